#include "modeling/op/row/gather.hpp"

#include "modeling/error.hpp"
#include "tests/modeling/support/compare.hpp"

namespace hexad::modeling {
namespace {

TEST_CASE("gathered rows and their gradients equal index_select's, rows taken never, once and often") {
  at::manual_seed(5);
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{7, 3, 5}, {7, 600, 64}, {7, 4}, {7}, {7, 0}}) {
    CAPTURE(shape.size());
    const at::Tensor x = at::randn(shape), rows = at::tensor(std::vector<int64_t>{6, 0, 0, 3, 5, 0, 6, 2, 2});
    at::Tensor mine = x.clone().requires_grad_(), wanted = x.clone().requires_grad_();
    const at::Tensor got = gather_rows(mine, rows), reference = wanted.index_select(0, rows);
    CHECK(at::equal(got, reference));
    const at::Tensor grad = at::randn_like(reference);
    got.backward(grad), reference.backward(grad);
    CHECK(at::allclose(mine.grad(), wanted.grad(), 1e-6, 1e-6));
  }
}

TEST_CASE("rows of any layout and type are gathered") {
  const at::Tensor rows = at::tensor(std::vector<int64_t>{2, 1, 1});
  const at::Tensor strided = at::arange(48).view({4, 12}).slice(1, 0, 12, 3).to(at::kBFloat16);
  for (const at::Tensor& x : {strided, strided.t().contiguous().t(), strided.to(at::kLong), strided.to(at::kDouble)})
    CHECK(at::equal(gather_rows(x, rows), x.index_select(0, rows)));
  CHECK(gather_rows(strided, rows.slice(0, 0, 0)).size(0) == 0);
}

TEST_CASE("a row that is not there is an error") {
  for (const int64_t row : {-1, 4})
    CHECK_THROWS_WITH_AS(gather_rows(at::ones({4, 2}), at::tensor(std::vector<int64_t>{0, row})),
                         fmt::format("gather of rows: got row {} of 4", row).c_str(), Error);
}

}  // namespace
}  // namespace hexad::modeling
