// Rows of experts: sorting, moving, the activation between the products and the sums of their gradients.
#include <ATen/Functions.h>
#include <ATen/cuda/CUDAContextLight.h>

#include "modeling/op/cuda/binding.hpp"
#include "modeling/op/cuda/expert/expert_kernels.hpp"
#include "modeling/op/cuda/expert/expert_operators.hpp"
#include "modeling/op/cuda/operators.hpp"

namespace hexad::modeling::cuda {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 34;  // pieces of eight are counted in 32 bits

ExpertRowsCall rows_call(const at::Tensor& x, const at::Tensor& rows) {
  ExpertRowsCall call;
  call.rows = rows.const_data_ptr<int64_t>();
  call.tokens = rows.size(0), call.topk = static_cast<int>(rows.size(1)), call.dim = static_cast<int>(x.size(1));
  call.type = element_of(x);
  return call;
}

WeightedSwigluCall swiglu_call(const at::Tensor& gate_up, const at::Tensor& probs, const at::Tensor& slots) {
  WeightedSwigluCall call;
  call.gate_up = gate_up.const_data_ptr();
  if (probs.defined()) call.probs = probs.const_data_ptr<float>(), call.slots = slots.const_data_ptr<int64_t>();
  call.rows = gate_up.size(0), call.columns = static_cast<int>(gate_up.size(1) / 2);
  call.type = element_of(gate_up);
  return call;
}

// How the sums of experts lie: alike, and at one distance.
struct SumLayout {
  int64_t parts = 1, part_stride = 0, stride = 0;
  bool found = false;
};

SumLayout layout_of(const std::vector<at::Tensor>& sums) {
  const at::Tensor& first = sums.front();
  SumLayout layout;
  if (first.dim() == 3) layout.parts = first.size(0), layout.part_stride = first.stride(0);
  if (!(first.dim() == 3 ? first.select(0, 0) : first).is_contiguous()) return layout;
  const float* const begin = first.const_data_ptr<float>();
  if (sums.size() > 1) layout.stride = sums[1].const_data_ptr<float>() - begin;
  layout.found = is_aligned(begin) && layout.stride % 4 == 0 && layout.part_stride % 4 == 0 &&
                 first.numel() / layout.parts % 8 == 0;
  for (size_t e = 1; layout.found && e < sums.size(); ++e)
    layout.found = sums[e].const_data_ptr<float>() - begin == layout.stride * static_cast<int64_t>(e) &&
                   sums[e].sizes() == first.sizes() && sums[e].strides() == first.strides();
  return layout;
}

}  // namespace

bool fits_expert_sort(const at::Tensor& experts, int64_t num_experts) {
  return experts.is_cuda() && num_experts <= kMostSortedExperts && experts.numel() < INT32_MAX;
}

ExpertOrder sort_by_expert(const at::Tensor& experts_in, int64_t num_experts) {
  const at::Tensor experts = experts_in.contiguous();
  const at::TensorOptions int32 = experts.options().dtype(at::kInt);
  const int64_t pairs = experts.numel();
  ExpertOrder out;
  out.ends = at::empty({num_experts}, int32);
  out.tokens = at::empty({pairs}, experts.options()), out.slots = at::empty_like(out.tokens);
  out.rows = at::empty_like(experts);
  ExpertSortCall call;
  call.experts = experts.const_data_ptr<int64_t>(), call.pairs = pairs;
  call.topk = static_cast<int>(experts.size(1)), call.num_experts = static_cast<int>(num_experts);
  const at::Tensor counts = at::empty({expert_sort_scratch(pairs, call.num_experts)}, int32);
  call.counts = counts.mutable_data_ptr<int32_t>(), call.ends = out.ends.mutable_data_ptr<int32_t>();
  call.tokens = out.tokens.mutable_data_ptr<int64_t>(), call.slots = out.slots.mutable_data_ptr<int64_t>();
  call.rows = out.rows.mutable_data_ptr<int64_t>();
  sort_by_expert(call, stream_of(experts));
  return out;
}

bool fits_expert_rows(const at::Tensor& x) {
  return has_kernels(x) && x.dim() == 2 && x.size(1) % 8 == 0 && x.numel() < kMostElements;
}

at::Tensor spread_rows(const at::Tensor& x_in, const at::Tensor& rows_in) {
  const at::Tensor x = aligned(x_in), rows = rows_in.contiguous(),
                   out = at::empty({rows.numel(), x.size(1)}, x.options());
  spread_rows(rows_call(x, rows), x.const_data_ptr(), out.mutable_data_ptr(), stream_of(x));
  return out;
}

at::Tensor sum_rows(const at::Tensor& x_in, const at::Tensor& rows_in) {
  const at::Tensor x = aligned(x_in), rows = rows_in.contiguous(),
                   out = at::empty({rows.size(0), x.size(1)}, x.options());
  sum_rows(rows_call(x, rows), x.const_data_ptr(), out.mutable_data_ptr(), stream_of(x));
  return out;
}

at::Tensor weighted_swiglu(const at::Tensor& gate_up_in, const at::Tensor& probs, const at::Tensor& slots) {
  const at::Tensor gate_up = aligned(gate_up_in),
                   y = at::empty({gate_up.size(0), gate_up.size(1) / 2}, gate_up.options());
  weighted_swiglu(swiglu_call(gate_up, probs, slots), y.mutable_data_ptr(), stream_of(gate_up));
  return y;
}

WeightedSwigluGradient weighted_swiglu_gradient(const at::Tensor& grad_in, const at::Tensor& gate_up_in,
                                                const at::Tensor& probs, const at::Tensor& slots) {
  const at::Tensor grad = aligned(grad_in), gate_up = aligned(gate_up_in);
  WeightedSwigluGradient out{at::empty_like(gate_up), {}, at::empty_like(grad)};
  if (probs.defined()) out.probs = at::empty_like(probs);
  const WeightedSwigluGrads grads{grad.const_data_ptr(), out.gate_up.mutable_data_ptr(),
                                  out.activation.mutable_data_ptr(),
                                  probs.defined() ? out.probs.mutable_data_ptr<float>() : nullptr};
  weighted_swiglu_backward(swiglu_call(gate_up, probs, slots), grads, stream_of(grad));
  return out;
}

bool add_grouped_gradient(const std::vector<at::Tensor>& sums, const at::Tensor& grad, const at::Tensor& x,
                          const at::Tensor& ends) {
  if (!x.is_cuda() || x.scalar_type() != at::kBFloat16 || grad.scalar_type() != at::kBFloat16) return false;
  const SumLayout layout = layout_of(sums);
  const int64_t out = grad.size(1), in = x.size(1);
  const bool aligned = is_aligned(grad.const_data_ptr()) && is_aligned(x.const_data_ptr()) && grad.stride(0) % 8 == 0 &&
                       grad.stride(1) == 1 && x.is_contiguous();
  if (!layout.found || !aligned || in % 8 != 0 || out / layout.parts % 8 != 0) return false;
  GroupedGradientCall call;
  call.grad = grad.const_data_ptr(), call.x = x.const_data_ptr(), call.ends = ends.const_data_ptr<int32_t>();
  call.sum = sums.front().mutable_data_ptr<float>();
  call.grad_stride = grad.stride(0), call.x_stride = in;
  call.sum_stride = layout.stride, call.part_stride = layout.part_stride;
  call.experts = static_cast<int>(sums.size()), call.parts = static_cast<int>(layout.parts);
  call.out = static_cast<int>(out), call.in = static_cast<int>(in);
  call.device = x.get_device();
  call.processors = at::cuda::getDeviceProperties(x.get_device())->multiProcessorCount;
  const at::Tensor scratch = at::empty({grouped_gradient_scratch(call)}, x.options().dtype(at::kByte));
  add_grouped_gradient(call, scratch.mutable_data_ptr(), stream_of(x));
  return true;
}

bool add_products(const std::vector<at::Tensor>& sums, const at::Tensor& products, const at::Tensor& ends) {
  if (!has_kernels(products)) return false;
  const SumLayout layout = layout_of(sums);
  const int64_t size = products.size(1) * products.size(2);
  if (!layout.found || !products.select(0, 0).is_contiguous() || !is_aligned(products.const_data_ptr()) ||
      products.stride(0) % 8 != 0)
    return false;
  AddProductsCall call;
  call.product = products.const_data_ptr(), call.type = element_of(products);
  call.sum = sums.front().mutable_data_ptr<float>(), call.ends = ends.const_data_ptr<int32_t>();
  call.size = size, call.product_stride = products.stride(0);
  call.sum_stride = layout.stride, call.part_stride = layout.part_stride, call.parts = static_cast<int>(layout.parts);
  call.experts = static_cast<int>(products.size(0));
  add_products(call, stream_of(products));
  return true;
}

}  // namespace hexad::modeling::cuda
