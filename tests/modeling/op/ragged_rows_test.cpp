#include "modeling/op/row/ragged_rows.hpp"

#include <ATen/Functions.h>
#include <doctest/doctest.h>

namespace hexad::modeling {
namespace {

using Offsets = std::vector<int64_t>;

TEST_CASE("bounds of a pack: powers of two that hold it, and not less than what one graph serves") {
  const RowBounds small = bucketed_bounds({0, 5, 5, 9});
  CHECK(small.rows == 8);
  CHECK(small.length == 128);
  CHECK(small.tokens == 4096);
  Offsets offsets = {0};
  for (int i = 0; i < 43; ++i) offsets.push_back(offsets.back() + (i == 7 ? 2049 : 700));
  const RowBounds bounds = bucketed_bounds(offsets);
  CHECK(bounds.rows == 64);
  CHECK(bounds.length == 4096);
  CHECK(bounds.tokens == 32768);
  CHECK(bucketed_bounds({0}).rows == 8);  // no sequence at all
}

TEST_CASE("rows of a pack, then empty ones") {
  const Offsets offsets = {0, 5, 5, 105, 107};
  const RaggedRows rows(offsets, bucketed_bounds(offsets), at::kCPU);
  CHECK(rows.lengths().equal(at::tensor({5, 0, 100, 2, 0, 0, 0, 0}, at::kInt)));
  CHECK(rows.starts(3).equal(at::tensor(Offsets{0, 15, 15, 315, 321, 321, 321, 321, 321})));
  CHECK(rows.starts(3).is_same(rows.starts(3)));
  CHECK(rows.starts(2).slice(0, 0, 4).equal(at::tensor(Offsets{0, 10, 10, 210})));
}

}  // namespace
}  // namespace hexad::modeling
