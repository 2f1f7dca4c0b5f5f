#include "modeling/op/row/adjacent.hpp"

#include "tests/modeling/support/compare.hpp"

namespace hexad::modeling {
namespace {

TEST_CASE("adjacent rows of one storage are one tensor, others are not") {
  const at::Tensor whole = at::randn({10, 4});
  const at::Tensor first = whole.slice(0, 0, 3), second = whole.slice(0, 3, 4), third = whole.slice(0, 4, 10);
  const at::Tensor joined = adjacent({first, second, third}, 0);
  CHECK(joined.equal(whole));
  CHECK(joined.data_ptr() == whole.data_ptr());
  CHECK(!joined.requires_grad());
  CHECK(adjacent({second, third}, 0).equal(whole.slice(0, 3)));
  CHECK(!adjacent({second, first}, 0).defined());                            // out of order
  CHECK(!adjacent({first, third}, 0).defined());                             // a gap
  CHECK(!adjacent({first, second.clone()}, 0).defined());                    // other memory
  CHECK(!adjacent({first, at::Tensor()}, 0).defined());                      // nothing
  CHECK(!adjacent({first, second.view({4, 1})}, 0).defined());               // another width
  CHECK(!adjacent({whole.slice(1, 0, 2), whole.slice(1, 2)}, 0).defined());  // columns
  const at::Tensor bias = at::randn({7});
  CHECK(adjacent({bias.slice(0, 0, 3), bias.slice(0, 3)}, 0).equal(bias));
}

TEST_CASE("adjacent columns with one row stride are one tensor") {
  const at::Tensor whole = at::randn({5, 12});
  const std::vector<at::Tensor> parts = side_by_side(whole, {4, 6, 2});
  CHECK(parts[1].equal(whole.slice(1, 4, 10)));
  CHECK(parts[1].data_ptr() == whole.slice(1, 4).data_ptr());
  CHECK(adjacent(parts, 1).equal(whole));
  CHECK(adjacent({parts[0].view({5, 2, 2}), parts[1].view({5, 3, 2})}, 1).equal(whole.slice(1, 0, 10)));
  CHECK(adjacent({parts[1], parts[2]}, 1).stride(0) == 12);
  CHECK(!adjacent({parts[0], parts[2]}, 1).defined());
  CHECK(!adjacent({parts[0], parts[1].contiguous()}, 1).defined());
  CHECK(!adjacent({whole, whole.slice(1, 0, 0)}, 1).defined());
  CHECK(!adjacent({parts[0].slice(0, 0, 3), parts[1]}, 1).defined());  // other rows
  const at::Tensor rows = at::randn({2, 4});                           // [4] after [4], but rows overlap
  CHECK(!adjacent({rows.slice(0, 0, 1), rows.slice(0, 1, 2)}, 1).defined());
}

TEST_CASE("equal parts at one distance are one tensor") {
  const at::Tensor whole = at::randn({12, 5});
  const auto part = [&](int64_t row) { return whole.slice(0, row, row + 2); };
  const at::Tensor every_other = at_one_distance({part(1), part(5), part(9)});
  CHECK(every_other.equal(at::stack({part(1), part(5), part(9)})));
  CHECK(every_other.data_ptr() == part(1).data_ptr());
  CHECK(at_one_distance({part(3)}).equal(part(3).unsqueeze(0)));
  CHECK(!at_one_distance({part(1), part(5), part(8)}).defined());                   // another distance
  CHECK(!at_one_distance({part(5), part(1)}).defined());                            // descending
  CHECK(!at_one_distance({part(1), part(2)}).defined());                            // they overlap
  CHECK(!at_one_distance({part(1), part(5).clone()}).defined());                    // other memory
  CHECK(!at_one_distance({part(1), whole.slice(0, 5, 8)}).defined());               // another size
  CHECK(!at_one_distance({whole.slice(1, 0, 2), whole.slice(1, 2, 4)}).defined());  // columns
}

}  // namespace
}  // namespace hexad::modeling
