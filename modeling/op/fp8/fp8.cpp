#include "modeling/op/fp8/fp8.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <limits>

#include "modeling/op/cuda/operators.hpp"
#include "modeling/op/fp8/blocks.hpp"
#include "modeling/op/row/adjacent.hpp"

namespace hexad::modeling {
namespace {

int64_t rounded_up(int64_t size) { return (size + kFp8Multiple - 1) / kFp8Multiple * kFp8Multiple; }

// Zeros of any type: ATen fills none of FP8.
at::Tensor empty_fp8(at::IntArrayRef sizes, const at::Tensor& like, at::ScalarType type, bool zeroed) {
  const auto bytes = like.options().dtype(at::kByte);
  return (zeroed ? at::zeros(sizes, bytes) : at::empty(sizes, bytes)).view(type);
}

at::Tensor largest_of(const std::vector<at::Tensor>& parts) {
  if (cuda::has_kernels(parts[0])) return cuda::fp8_largest(parts);
  at::Tensor largest = at::zeros({1}, parts[0].options().dtype(at::kFloat));
  for (const at::Tensor& part : parts) largest = at::maximum(largest, part.abs().max().to(at::kFloat).view({1}));
  return largest;
}

// Into parts of the copies, of which either may be undefined; sets range.inverse, if that is defined.
void cast(const at::Tensor& x, const Fp8Range& range, const at::Tensor& rows, const at::Tensor& columns) {
  if (cuda::has_kernels(x)) return cuda::fp8_cast(x, range, rows, columns);
  const at::ScalarType type = (rows.defined() ? rows : columns).scalar_type();
  const at::Tensor factor = fp8_factor(range.largest, type), values = (x.to(at::kFloat) * factor).to(type);
  if (range.inverse.defined()) range.inverse.copy_(factor.reciprocal());
  if (rows.defined()) rows.copy_(values);
  if (columns.defined()) columns.narrow(1, 0, x.size(0)).copy_(values.t());
}

// Of the values, with the scales that are not the tensor's.
at::Tensor wide(const Fp8Matrix& x) {
  return x.scaling == Fp8Scaling::tensor ? x.values.to(at::kFloat) : without_scales(x);
}

// a b^T of fp32.
at::Tensor plain_product(const Fp8Matrix& a, const Fp8Matrix& b) {
  const at::Tensor y = at::mm(wide(a), wide(b).t()).narrow(0, 0, a.values.size(0) - a.zero_rows);
  return a.scaling == Fp8Scaling::tensor ? y * (a.inverse * b.inverse) : y;
}

}  // namespace

at::Tensor fp8_factor(const at::Tensor& largest, at::ScalarType type) {
  const at::Tensor factor = at::full_like(largest, type == at::kFloat8_e5m2 ? 57344.0 : 448.0) / largest;
  return at::where(largest == 0, at::ones_like(largest), factor.clamp_max(std::numeric_limits<float>::max()));
}

Fp8Tensor to_fp8(const std::vector<at::Tensor>& all, int64_t dim, at::ScalarType type, Fp8Copies copies,
                 const Fp8Range& known) {
  const at::NoGradGuard no_grad;
  const at::Tensor whole = all[0].is_cuda() && all.size() > 1 ? adjacent(all, dim) : at::Tensor();
  const std::vector<at::Tensor> parts = whole.defined() ? std::vector<at::Tensor>{whole} : all;
  int64_t size[2] = {parts[0].size(0), parts[0].size(1)};
  for (size_t i = 1; i < parts.size(); ++i) size[dim] += parts[i].size(dim);
  const int64_t padded = rounded_up(size[0]);
  Fp8Tensor x;
  x.range = known;
  if (!known.largest.defined()) {
    x.range.largest = largest_of(parts);
    x.range.inverse = at::empty_like(x.range.largest);
  }
  const Fp8Range written = {x.range.largest, known.largest.defined() ? at::Tensor() : x.range.inverse};
  if (copies != Fp8Copies::columns) x.rows = empty_fp8({size[0], size[1]}, parts[0], type, false);
  if (copies != Fp8Copies::rows) {
    const bool kernel_pads = cuda::has_kernels(parts[0]);
    x.columns = empty_fp8({size[1], padded}, parts[0], type, !kernel_pads && padded > size[0]);
  }
  int64_t begin = 0;
  for (const at::Tensor& part : parts) {
    const int64_t end = begin + part.size(dim), stop = dim == 0 && end == size[0] ? padded : end;
    const at::Tensor rows = x.rows.defined() ? x.rows.slice(dim, begin, end) : at::Tensor();
    cast(part, written, rows, x.columns.defined() ? x.columns.slice(1 - dim, begin, stop) : at::Tensor());
    begin = end;
  }
  return x;
}

at::Tensor fp8_product(const Fp8Matrix& a, const Fp8Matrix& b, const at::Tensor& bias, at::ScalarType type, bool fast) {
  const at::NoGradGuard no_grad;
  if (a.values.is_cuda() && a.scaling != Fp8Scaling::tensor) return cuda::fp8_scaled_product(a, b, bias, type);
  if (a.values.is_cuda()) {
    const bool fused =
        bias.defined() && type != at::kFloat && bias.scalar_type() == type && is_aligned(bias.const_data_ptr());
    const at::Tensor y = at::_scaled_mm(a.values, b.values.t(), a.inverse, b.inverse,
                                        fused ? std::optional(bias) : std::nullopt, {}, type, fast);
    return bias.defined() && !fused ? y + bias : y;
  }
  at::Tensor y = plain_product(a, b);
  if (bias.defined()) y.add_(bias);
  return y.to(type);
}

void accumulate_fp8_product(const at::Tensor& sum, const Fp8Matrix& g, const Fp8Matrix& x) {
  const at::NoGradGuard no_grad;
  if (g.values.is_cuda()) return cuda::accumulate_fp8_product(sum, g, x);
  at::Tensor(sum).add_(plain_product(g, x).view(sum.sizes()));
}

Fp8Matrix rows_of(const Fp8Matrix& x, int64_t begin, int64_t count) {
  if (begin == 0 && count == x.values.size(0)) return x;
  const at::Tensor inverse =
      x.scaling == Fp8Scaling::strips ? x.inverse.narrow(1, begin, count).contiguous() : x.inverse;
  return {x.values.narrow(0, begin, count), inverse, x.scaling, 0};
}

}  // namespace hexad::modeling
