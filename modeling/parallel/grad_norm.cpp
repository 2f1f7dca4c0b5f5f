#include "modeling/parallel/grad_norm.hpp"

#include <ATen/Functions.h>

#include <cmath>

namespace hexad::modeling {

namespace {

// ATen's norm on a CPU adds elements one after another: 28 million in fp32 lose 6e-4 of it. Rows of this many do not.
constexpr int64_t kRow = 256;

// fp64 [1 or more]: norms of parts of it, each formed in fp32.
at::Tensor norms_of_parts(const at::Tensor& grad, double norm_type) {
  const auto norm = [&](const at::Tensor& x, at::OptionalIntArrayRef dim) {
    return at::linalg_vector_norm(x, norm_type, dim, false, at::kFloat).to(at::kDouble).reshape({-1});
  };
  const int64_t rows = grad.is_cpu() && grad.is_contiguous() ? grad.numel() / kRow : 0;
  if (rows == 0) return norm(grad, std::nullopt);
  constexpr int64_t kLast[] = {1};
  const at::Tensor flat = grad.view({-1});
  const at::Tensor whole = norm(flat.narrow(0, 0, rows * kRow).view({rows, kRow}), at::IntArrayRef(kLast));
  if (rows * kRow == flat.numel()) return whole;
  return at::cat({whole, norm(flat.narrow(0, rows * kRow, flat.numel() - rows * kRow), std::nullopt)});
}

}  // namespace

double global_grad_norm(const std::vector<at::Tensor>& grads, double norm_type, const Group& group) {
  const bool infinite = std::isinf(norm_type);
  const at::Device device = grads.empty() ? at::Device(at::kCPU) : grads.front().device();
  // Combined in fp64: the powers of a large norm do not overflow.
  std::vector<at::Tensor> norms = {at::zeros({1}, at::TensorOptions(device).dtype(at::kDouble))};
  for (const at::Tensor& grad : grads)
    if (grad.numel() > 0) norms.push_back(norms_of_parts(grad, norm_type));
  const at::Tensor all = at::cat(norms);
  at::Tensor total = (infinite ? all.max() : all.pow(norm_type).sum()).reshape({1});
  group.all_reduce(total, infinite ? Reduce::max : Reduce::sum).wait();
  const double value = total.item<double>();
  return infinite ? value : std::pow(value, 1.0 / norm_type);
}

double clip_coefficient(double norm, double max_norm) {
  const double coefficient = max_norm / (norm + 1e-6);
  return coefficient > 1.0 ? 1.0 : coefficient;  // nan stays nan
}

}  // namespace hexad::modeling
