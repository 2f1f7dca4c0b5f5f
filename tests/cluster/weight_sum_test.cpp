// Checksums of weights: the numbers that generators report for the same bits
// (tests/plugins/native/weight_sums_test.cpp).
#include "core/cluster/refit/weight_sum.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "lib/base/error.hpp"

using namespace hexad;

namespace {

template <typename Bits>
int64_t sum_of(std::vector<Bits> bits, std::vector<int64_t> shape) {
  const DLTensor tensor{bits.data(),
                        {kDLCPU, 0},
                        static_cast<int32_t>(shape.size()),
                        {kDLInt, static_cast<uint8_t>(8 * sizeof(Bits)), 1},
                        shape.data(),
                        nullptr,
                        0};
  return cluster::weight_sum(tensor);
}

}  // namespace

TEST_CASE("a weight's checksum is that of its bits and their places") {
  // bits * (1 + row + 1000003 * column)
  CHECK(sum_of<int16_t>({5, 7, -3}, {3}) == 5 * 1 + 7 * 2 - 3 * 3);
  CHECK(sum_of<int16_t>({5, 7, -3, 2}, {2, 2}) == 5 * 1 + 7 * 1000004 - 3 * 2 + 2 * 1000005);
  CHECK(sum_of<int32_t>({5, 7, -3, 2}, {2, 2}) == 5 * 1 + 7 * 1000004 - 3 * 2 + 2 * 1000005);
  CHECK(sum_of<int16_t>({5, 7, -3, 2}, {2, 1, 2}) == sum_of<int16_t>({5, 7, -3, 2}, {2, 2}));
  CHECK(sum_of<int16_t>({-1}, {1}) == (int64_t{1} << 48) - 1);
  CHECK(sum_of<int64_t>({int64_t{1} << 48, 3}, {2}) == 6);
}

TEST_CASE("exchanged rows, columns and signs change a checksum") {
  const int64_t sum = sum_of<int16_t>({5, 7, -3, 2}, {2, 2});
  CHECK(sum_of<int16_t>({-3, 2, 5, 7}, {2, 2}) != sum);
  CHECK(sum_of<int16_t>({7, 5, 2, -3}, {2, 2}) != sum);
  CHECK(sum_of<int16_t>({5, 7, -3, 2}, {4, 1}) != sum);
  CHECK(sum_of<int16_t>({-5, 7, -3, 2}, {2, 2}) != sum);
}

TEST_CASE("a width that no weight has is refused") {
  CHECK_THROWS_WITH_AS(sum_of<int8_t>({1, 2}, {2}), "weight_sum: a weight of 8 bits; wanted 16, 32 or 64", Error);
}
