#include "modeling/weight/finite.hpp"

#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include "modeling/error.hpp"

namespace hexad::modeling {
namespace {

TEST_CASE("non-finite weights are refused with the first bad element") {
  at::Tensor weight = at::ones({2, 3}).to(at::kBFloat16);
  require_finite(weight, "w", "f");
  require_finite(at::full({1000}, 3e38, at::kFloat), "w", "f");
  weight[1][1] = NAN;
  weight[1][2] = INFINITY;
  CHECK_THROWS_WITH_AS(require_finite(weight, "w", "f"),
                       "f: 'w' holds 2 values that are not finite; the first is nan at element 4", Error);
}

}  // namespace
}  // namespace hexad::modeling
