// On a GPU (suite "gpu"): which of a build's kernels the card runs.
#include "modeling/op/cuda/architecture.hpp"

#include <doctest/doctest.h>

#include "modeling/op/cuda/operators.hpp"
#include "tests/support/test_device.hpp"

namespace hexad::modeling::cuda {

TEST_SUITE_BEGIN("gpu");

TEST_CASE("a card runs kernels that were compiled for it or for an older one") {
  const int kernels = kernel_architecture(0), card = capability(at::Device(at::kCUDA, 0));
  MESSAGE("kernels of compute_" << kernels << " on a card of compute capability " << card / 10 << "." << card % 10);
  CHECK(kernels >= 80);
  CHECK(kernels <= card);
  CHECK(kernel_architecture(0) == kernels);
  if (has_hopper_kernels() && card == 90) CHECK(runs_hopper_kernels(0));
  if (!has_hopper_kernels() || card != 90) CHECK_FALSE(runs_hopper_kernels(0));
}

TEST_CASE("a card that is not there is refused") {
  CHECK_THROWS_WITH(kernel_architecture(1000), doctest::Contains("`hexad doctor` names what this build"));
}

TEST_SUITE_END();

}  // namespace hexad::modeling::cuda
