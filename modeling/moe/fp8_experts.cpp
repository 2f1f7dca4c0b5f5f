#include "modeling/moe/fp8_experts.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "modeling/moe/grouped_products.hpp"
#include "modeling/moe/dispatch/permutation.hpp"
#include "modeling/op/cuda/expert/expert_operators.hpp"
#include "modeling/op/cuda/operators.hpp"
#include "modeling/op/fp8/fp8.hpp"

namespace hexad::modeling {
namespace {

constexpr at::ScalarType kType = at::kFloat8_e4m3fn;

at::Tensor empty_fp8(at::IntArrayRef sizes, const at::Tensor& like) {
  return at::empty(sizes, like.options().dtype(at::kByte)).view(kType);
}

at::Tensor largest_of(const at::Tensor& weights) {
  const at::NoGradGuard no_grad;
  return at::linalg_vector_norm(weights, INFINITY, at::IntArrayRef{1, 2}, false, at::kFloat);
}

}  // namespace

Fp8Rows to_fp8_rows(const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  if (cuda::has_kernels(x)) {
    const Fp8Rows out = {empty_fp8(x.sizes(), x), at::empty({x.size(0)}, x.options().dtype(at::kFloat))};
    if (x.size(0) > 0) cuda::fp8_cast_rows(x, out.values, out.inverse);
    return out;
  }
  const at::Tensor wide = x.to(at::kFloat), factor = fp8_factor(wide.abs().amax(1), kType);
  return {(wide * factor.unsqueeze(1)).to(kType), factor.reciprocal()};
}

Fp8Rows spread_rows(const Fp8Rows& x, const at::Tensor& tokens, const at::Tensor& rows) {
  const at::NoGradGuard no_grad;
  // Bytes travel in pairs, as the elements of a type that kernels move.
  const at::Tensor pairs = x.values.view(at::kBFloat16);
  return {spread_rows(pairs, tokens, rows).view(kType), x.inverse.index_select(0, tokens)};
}

Fp8Stack to_fp8_stack(const at::Tensor& weights, bool turned, const at::Tensor& known) {
  const at::NoGradGuard no_grad;
  const int64_t experts = weights.size(0), out = weights.size(1), in = weights.size(2);
  const at::Tensor largest = known.defined() ? known : largest_of(weights);
  if (cuda::has_kernels(weights)) {
    const Fp8Stack stack = {empty_fp8(turned ? at::IntArrayRef{experts, in, out} : weights.sizes(), weights),
                            at::empty_like(largest)};
    cuda::fp8_cast_stack(weights, largest, stack.values, stack.inverse, turned);
    return stack;
  }
  const at::Tensor factor = fp8_factor(largest, kType);
  const at::Tensor values = (weights.to(at::kFloat) * factor.view({experts, 1, 1})).to(kType);
  return {turned ? values.transpose(1, 2).contiguous() : values.contiguous(), factor.reciprocal()};
}

Fp8Stack fp8_experts(const std::vector<at::Tensor>& first, const std::vector<at::Tensor>& second, bool turned,
                     Fp8Casts* casts) {
  if (!casts) return to_fp8_stack(stacked(first, second), turned);
  std::vector<at::Tensor> weights = first;
  weights.insert(weights.end(), second.begin(), second.end());
  const Fp8Tensor cast = casts->get(weights, turned ? Fp8Copies::columns : Fp8Copies::rows, [&](const Fp8Range& known) {
    const at::Tensor whole = stacked(first, second);
    const at::Tensor largest = known.largest.defined() ? known.largest : largest_of(whole);
    const Fp8Stack stack = to_fp8_stack(whole, turned, largest);
    Fp8Tensor made;
    made.range = {largest, stack.inverse};
    (turned ? made.columns : made.rows) = stack.values;
    (turned ? made.column_inverse : made.row_inverse) = stack.inverse;
    return made;
  });
  return turned ? Fp8Stack{cast.columns, cast.column_inverse} : Fp8Stack{cast.rows, cast.row_inverse};
}

at::Tensor fp8_grouped_product(const Fp8Rows& x, const Fp8Stack& weights, const at::Tensor& ends, at::ScalarType type,
                               bool fast) {
  const at::NoGradGuard no_grad;
  const int64_t experts = weights.values.size(0), out = weights.values.size(1);
  if (x.values.is_cuda()) {
    const at::Tensor scales = weights.inverse.unsqueeze(1).expand({experts, out}).contiguous();
    return at::_scaled_grouped_mm(x.values, weights.values.transpose(1, 2), x.inverse, scales, ends, {}, {}, type,
                                  fast);
  }
  const at::Tensor rows = x.values.to(at::kFloat) * x.inverse.unsqueeze(1);
  const at::Tensor y = at::zeros({rows.size(0), out}, rows.options());
  int64_t begin = 0;
  for (int64_t e = 0; e < experts; ++e) {
    const int64_t end = ends[e].item<int32_t>();
    const at::Tensor weight = weights.values[e].to(at::kFloat) * weights.inverse[e];
    y.slice(0, begin, end).copy_(at::mm(rows.slice(0, begin, end), weight.t()));
    begin = end;
  }
  return y.to(type);
}

}  // namespace hexad::modeling
