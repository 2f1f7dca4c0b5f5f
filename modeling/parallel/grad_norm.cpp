#include "modeling/parallel/grad_norm.hpp"

#include <ATen/Functions.h>

#include <cmath>

namespace hexad::modeling {

double global_grad_norm(const std::vector<at::Tensor>& grads, double norm_type, const Group& group) {
  const bool infinite = std::isinf(norm_type);
  const at::Device device = grads.empty() ? at::Device(at::kCPU) : grads.front().device();
  // Shards' norms are formed in fp32 and combined in fp64: the powers of a large norm do not overflow.
  std::vector<at::Tensor> norms = {at::zeros({}, at::TensorOptions(device).dtype(at::kDouble))};
  for (const at::Tensor& grad : grads)
    if (grad.numel() > 0)
      norms.push_back(at::linalg_vector_norm(grad, norm_type, std::nullopt, false, at::kFloat).to(at::kDouble));
  const at::Tensor stacked = at::stack(norms);
  at::Tensor total = (infinite ? stacked.max() : stacked.pow(norm_type).sum()).reshape({1});
  group.all_reduce(total, infinite ? Reduce::max : Reduce::sum).wait();
  const double value = total.item<double>();
  return infinite ? value : std::pow(value, 1.0 / norm_type);
}

double clip_coefficient(double norm, double max_norm) {
  const double coefficient = max_norm / (norm + 1e-6);
  return coefficient > 1.0 ? 1.0 : coefficient;  // nan stays nan
}

}  // namespace hexad::modeling
