#include "modeling/parallel/grad_norm.hpp"

#include <ATen/Functions.h>

#include <cmath>

#include "modeling/op/cpu/dispatch.hpp"
#include "modeling/op/cpu/parallel.hpp"
#include "modeling/op/cpu/row_kernels.hpp"

namespace hexad::modeling {

namespace {

constexpr int64_t kPart = 65536;  // elements: the parts do not go by the number of threads

// fp64 [n]: norms of parts of it. Squares are summed in fp64: neither the length of a gradient nor the pieces that
// layouts and optimizers cut it into show in the norm.
at::Tensor norms_on_cpu(const at::Tensor& grad) {
  const int64_t parts = (grad.numel() + kPart - 1) / kPart;
  at::Tensor squares = at::empty({parts}, at::kDouble);
  double* const sums = squares.mutable_data_ptr<double>();
  cpu::with_elements(grad, [&](auto element) {
    const auto* const x = cpu::data<decltype(element)>(grad);
    cpu::parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        sums[i] = cpu::sum_of_squares(x + i * kPart, std::min(kPart, grad.numel() - i * kPart));
    });
  });
  return squares.sqrt_();
}

// fp64 [1 or more].
at::Tensor norms_of_parts(const at::Tensor& grad, double norm_type) {
  if (cpu::has_kernels(grad) && grad.is_contiguous() && norm_type == 2) return norms_on_cpu(grad);
  const at::ScalarType sums = grad.is_cpu() ? at::kDouble : at::kFloat;
  return at::linalg_vector_norm(grad, norm_type, std::nullopt, false, sums).to(at::kDouble).reshape({1});
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
