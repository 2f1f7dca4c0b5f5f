// An op against its plain reference, forward and backward.
#pragma once
#include <functional>
#include <vector>

#include <ATen/Functions.h>
#include <doctest/doctest.h>

namespace hexad::modeling {

// Largest absolute difference.
inline double distance(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return a.numel() == 0 ? 0.0 : (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

// ||a - b|| / ||b||.
inline double relative_distance(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  return ((a.to(at::kDouble) - b.to(at::kDouble)).norm() / (b.to(at::kDouble).norm() + 1e-30)).item<double>();
}

using TensorFunction = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// Runs `op` on the inputs in `dtype` and `reference` on the same rounded values in fp64; compares the outputs and the
// gradients of every input under a random output gradient by relative L2 distance.
inline void check_op(const TensorFunction& op, const TensorFunction& reference, const std::vector<at::Tensor>& inputs,
                     at::ScalarType dtype, double tolerance) {
  std::vector<at::Tensor> fast, plain;
  for (const at::Tensor& input : inputs) {
    fast.push_back(input.to(dtype).clone().set_requires_grad(true));
    plain.push_back(fast.back().detach().to(at::kDouble).set_requires_grad(true));
  }
  const at::Tensor got = op(fast), want = reference(plain);
  CHECK(got.isfinite().all().item<bool>());
  CHECK(relative_distance(got, want) <= tolerance);
  const at::Tensor grad = at::randn(want.sizes(), at::kDouble).to(got.scalar_type());
  got.backward(grad);
  want.backward(grad.to(at::kDouble));
  for (size_t i = 0; i < inputs.size(); ++i) {
    INFO("gradient of input " << i);
    CHECK(bool(fast[i].grad().scalar_type() == dtype));
    CHECK(relative_distance(fast[i].grad(), plain[i].grad()) <= tolerance);
  }
}

// fp32 to 1e-5 and bf16 to a few roundings.
inline void check_op_in_both(const TensorFunction& op, const TensorFunction& reference,
                             const std::vector<at::Tensor>& inputs) {
  {
    INFO("fp32");
    check_op(op, reference, inputs, at::kFloat, 1e-5);
  }
  {
    INFO("bf16");
    check_op(op, reference, inputs, at::kBFloat16, 8e-3);
  }
}

}  // namespace hexad::modeling
