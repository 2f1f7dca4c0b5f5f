// An op against its plain reference, forward and backward.
#pragma once
#include <functional>
#include <vector>

#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include "tests/modeling/support/devices.hpp"

namespace hexad::modeling {

// Largest absolute difference.
inline double distance(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  const at::Tensor difference = a.to(at::kCPU, at::kDouble) - b.to(at::kCPU, at::kDouble);
  return a.numel() == 0 ? 0.0 : difference.abs().max().item<double>();
}

// ||a - b|| / ||b||.
inline double relative_distance(const at::Tensor& a, const at::Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  const at::Tensor got = a.to(at::kCPU, at::kDouble), want = b.to(at::kCPU, at::kDouble);
  return ((got - want).norm() / (want.norm() + 1e-30)).item<double>();
}

using TensorFunction = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// Runs `op` on the inputs in `dtype` on `device` and `reference` on the same rounded values in fp64; compares the
// outputs and the gradients of every input under a random output gradient by relative L2 distance.
inline void check_op(const TensorFunction& op, const TensorFunction& reference, const std::vector<at::Tensor>& inputs,
                     at::Device device, at::ScalarType dtype, double tolerance) {
  std::vector<at::Tensor> fast, plain;
  for (const at::Tensor& input : inputs) {
    fast.push_back(input.to(device, dtype, false, /*copy=*/true).set_requires_grad(true));
    plain.push_back(fast.back().detach().to(at::kDouble).set_requires_grad(true));
  }
  const at::Tensor got = op(fast), want = reference(plain);
  CHECK(got.isfinite().all().item<bool>());
  CHECK(relative_distance(got, want) <= tolerance);
  const at::Tensor grad = at::randn(want.sizes(), at::kDouble).to(device, got.scalar_type());
  got.backward(grad);
  want.backward(grad.to(at::kDouble));
  for (size_t i = 0; i < inputs.size(); ++i) {
    INFO("gradient of input " << i);
    CHECK(bool(fast[i].grad().scalar_type() == dtype));
    CHECK(relative_distance(fast[i].grad(), plain[i].grad()) <= tolerance);
  }
}

// On every device: fp32 to 1e-5, bf16 to a few roundings.
inline void check_op_everywhere(const TensorFunction& op, const TensorFunction& reference,
                                const std::vector<at::Tensor>& inputs) {
  for (const at::Device device : test_devices()) {
    INFO("device " << device.str());
    check_op(op, reference, inputs, device, at::kFloat, 1e-5);
    INFO("in bf16");
    check_op(op, reference, inputs, device, at::kBFloat16, 8e-3);
  }
}

}  // namespace hexad::modeling
