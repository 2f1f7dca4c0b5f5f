#include "modeling/op/gemm.hpp"

#include <ATen/Context.h>

#include <limits>

#include "tests/modeling/support/compare.hpp"

namespace hexad::modeling {
namespace {

struct Sizes {
  int64_t rows, inner, columns;
};
// On both sides of every bound between the libraries, sizes that divide by nothing among them.
const std::vector<Sizes> kSizes = {{1, 512, 512},   {13, 515, 512}, {16, 512, 512},  {67, 640, 520},  {128, 512, 512},
                                   {300, 641, 515}, {64, 32, 8200}, {512, 256, 512}, {512, 255, 513}, {600, 300, 600},
                                   {5, 24, 32},     {0, 512, 512},  {3, 512, 0}};

enum class Form { plain, transposed, columns_of_more };

at::Tensor random(int64_t rows, int64_t columns, Form form) {
  if (form == Form::plain) return at::randn({rows, columns});
  if (form == Form::transposed) return at::randn({columns, rows}).t();
  return at::randn({rows, columns + 3}).slice(1, 2, columns + 2);
}

void is_near(const at::Tensor& got, const at::Tensor& wanted, int64_t inner) {
  REQUIRE(got.sizes() == wanted.sizes());
  if (got.numel() == 0) return;
  const double error = (got.to(at::kDouble) - wanted).abs().max().item<double>();
  CHECK(error <= 1e-6 * (1 + double(inner)));  // sums of `inner` products of magnitude 1
}

void check(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor wanted = at::mm(a.to(at::kDouble), b.to(at::kDouble));
  const int64_t inner = a.size(1);
  is_near(gemm(a, b), wanted, inner);
  const at::Tensor poisoned = at::full_like(wanted, std::numeric_limits<double>::quiet_NaN(), at::kFloat);
  gemm_out(poisoned, a, b);
  is_near(poisoned, wanted, inner);
  const at::Tensor sum = at::ones_like(wanted, at::kFloat), wide = at::ones({a.size(0), b.size(1) + 5});
  add_gemm(sum, a, b);
  is_near(sum, wanted + 1, inner);
  add_gemm(wide.slice(1, 1, b.size(1) + 1), a, b);
  is_near(wide.slice(1, 1, b.size(1) + 1), wanted + 1, inner);
  CHECK(wide.select(1, 0).eq(1).all().item<bool>());
}

void check_all() {
  for (const Sizes& size : kSizes) {
    for (const Form left : {Form::plain, Form::transposed, Form::columns_of_more}) {
      for (const Form right : {Form::plain, Form::transposed, Form::columns_of_more}) {
        CAPTURE(size.rows);
        CAPTURE(size.inner);
        CAPTURE(size.columns);
        CAPTURE(static_cast<int>(left));
        CAPTURE(static_cast<int>(right));
        check(random(size.rows, size.inner, left), random(size.inner, size.columns, right));
      }
    }
  }
}

TEST_CASE("products in fp32 equal those in fp64, of any layout, with either library") {
  at::manual_seed(3);
  check_all();
  at::globalContext().setUserEnabledMkldnn(false);
  check_all();
  at::globalContext().setUserEnabledMkldnn(true);
}

TEST_CASE("a linear of CPUs adds its bias in both libraries") {
  at::manual_seed(4);
  for (const int64_t rows : {1, 20, 200}) {
    const at::Tensor x = at::randn({rows, 520}), weight = at::randn({515, 520}), bias = at::randn({515});
    const at::Tensor wanted = at::linear(x.to(at::kDouble), weight.to(at::kDouble), bias.to(at::kDouble));
    is_near(gemm_linear(x, weight, bias), wanted, 520);
    is_near(gemm_linear(x, weight, {}), wanted - bias.to(at::kDouble), 520);
  }
}

TEST_CASE("products of other types stay in their type") {
  const at::Tensor a = at::ones({20, 600}, at::kBFloat16), b = at::ones({600, 600}, at::kBFloat16);
  CHECK((gemm(a, b).scalar_type() == at::kBFloat16));
  CHECK(gemm(a, b).eq(600).all().item<bool>());
  CHECK((gemm(a.to(at::kDouble), b.to(at::kDouble)).scalar_type() == at::kDouble));
}

}  // namespace
}  // namespace hexad::modeling
