#include "core/cluster/refit/weight_sum.hpp"

#include <vector>

#include "lib/base/error.hpp"

namespace hexad::cluster {
namespace {

constexpr uint64_t kColumnFactor = 1000003, kModulus = uint64_t{1} << 48;

template <typename Bits>
uint64_t sum_of(const Bits* bits, int64_t rows, int64_t columns) {
  uint64_t result = 0;
  std::vector<uint64_t> column_sums(static_cast<size_t>(columns), 0);
  for (int64_t i = 0; i < rows; ++i, bits += columns) {
    uint64_t row_sum = 0;
    for (int64_t j = 0; j < columns; ++j) {
      const auto value = static_cast<uint64_t>(static_cast<int64_t>(bits[j]));
      row_sum += value;
      column_sums[static_cast<size_t>(j)] += value;
    }
    result += row_sum * static_cast<uint64_t>(i + 1);
  }
  for (size_t j = 0; j < column_sums.size(); ++j) result += column_sums[j] * kColumnFactor * j;
  return result;
}

}  // namespace

int64_t weight_sum(const DLTensor& weight) {
  const int64_t rows = weight.ndim > 0 ? weight.shape[0] : 1;
  int64_t columns = 1;
  for (int32_t d = 1; d < weight.ndim; ++d) columns *= weight.shape[d];
  const auto sum = [&]() -> uint64_t {
    switch (weight.dtype.bits) {
      case 16: return sum_of(HEXAD_DATA(const int16_t, &weight), rows, columns);
      case 32: return sum_of(HEXAD_DATA(const int32_t, &weight), rows, columns);
      case 64: return sum_of(HEXAD_DATA(const int64_t, &weight), rows, columns);
      default: fail(ErrorKind::worker, "weight_sum: a weight of {} bits; wanted 16, 32 or 64", weight.dtype.bits);
    }
  };
  return static_cast<int64_t>(sum() & (kModulus - 1));
}

}  // namespace hexad::cluster
