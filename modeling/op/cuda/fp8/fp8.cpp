// FP8 copies, and FP8 products that add to fp32 sums.
#include <ATen/Functions.h>

#include "modeling/error.hpp"
#include "modeling/op/cuda/binding.hpp"
#include "modeling/op/cuda/expert/expert_operators.hpp"
#include "modeling/op/cuda/fp8/fp8_kernel.hpp"
#include "modeling/op/cuda/fp8/fp8_matmul.hpp"
#include "modeling/op/cuda/operators.hpp"

namespace hexad::modeling::cuda {
namespace {

Fp8Source source_of(const at::Tensor& x) {
  return {x.size(0), x.size(1), x.stride(0), x.const_data_ptr(), element_of(x)};
}

bool takes_products(const at::Tensor& sum) {
  return is_aligned(sum.const_data_ptr()) && sum.stride(-1) == 1 && sum.stride(-2) % 4 == 0 &&
         (sum.dim() == 2 || sum.stride(0) % 4 == 0);
}

// Part by part, each with its own rows of g: scales by strips have no distance between parts. False when nothing was
// done.
bool add_parts(const at::Tensor& sum, const Fp8Matrix& g, const Fp8Matrix& x) {
  const int64_t rows = sum.size(1);
  for (int64_t part = 0; part < sum.size(0); ++part) {
    if (fp8_matmul(sum[part], rows_of(g, part * rows, rows), x, {.accumulate = true})) continue;
    if (part == 0) return false;
    fail("FP8 weight gradient: cuBLAS has no kernel for {} x {} x {}", rows, sum.size(2), x.values.size(1));
  }
  return true;
}

}  // namespace

at::Tensor fp8_largest(const std::vector<at::Tensor>& parts) {
  const at::Tensor largest = at::zeros({1}, parts[0].options().dtype(at::kFloat));
  for (const at::Tensor& part : parts) {
    const at::Tensor x = with_row_stride(part);
    fp8_largest(source_of(x), largest.mutable_data_ptr<float>(), stream_of(x));
  }
  return largest;
}

void fp8_cast(const at::Tensor& part, const Fp8Range& range, const at::Tensor& rows, const at::Tensor& columns) {
  const at::Tensor x = with_row_stride(part);
  Fp8CastCall call;
  call.source = source_of(x);
  call.to = (rows.defined() ? rows : columns).scalar_type() == at::kFloat8_e5m2 ? Fp8Element::e5m2 : Fp8Element::e4m3;
  call.largest = range.largest.const_data_ptr<float>();
  if (range.inverse.defined()) call.inverse = range.inverse.mutable_data_ptr<float>();
  if (rows.defined()) call.by_rows = rows.mutable_data_ptr(), call.by_rows_stride = rows.stride(0);
  if (columns.defined()) {
    call.by_columns = columns.mutable_data_ptr(), call.by_columns_stride = columns.stride(0);
    call.padded_rows = columns.size(1);
  }
  fp8_cast(call, stream_of(x));
}

void fp8_cast_rows(const at::Tensor& source, const at::Tensor& values, const at::Tensor& inverse) {
  const at::Tensor x = with_row_stride(source);
  fp8_cast_rows(source_of(x), values.mutable_data_ptr(), inverse.mutable_data_ptr<float>(), stream_of(x));
}

void fp8_cast_stack(const at::Tensor& weights, const at::Tensor& largest, const at::Tensor& values,
                    const at::Tensor& inverse, bool turned) {
  const auto in_words = [&](int64_t dim) { return weights.stride(dim) * weights.element_size() % 16 == 0; };
  const bool readable = weights.stride(2) == 1 && in_words(0) && in_words(1) && is_aligned(weights.const_data_ptr());
  const at::Tensor w = readable ? weights : aligned(weights);
  Fp8CastCall call;
  call.source = {w.size(1), w.size(2), w.stride(1), w.const_data_ptr(), element_of(w)};
  call.count = static_cast<int>(w.size(0)), call.source_distance = w.stride(0);
  call.largest = largest.const_data_ptr<float>(), call.inverse = inverse.mutable_data_ptr<float>();
  if (turned) {
    call.by_columns = values.mutable_data_ptr(), call.by_columns_stride = call.padded_rows = values.stride(1);
    call.by_columns_distance = values.stride(0);
  } else {
    call.by_rows = values.mutable_data_ptr(), call.by_rows_stride = values.stride(1);
    call.by_rows_distance = values.stride(0);
  }
  fp8_cast(call, stream_of(w));
}

void fp8_cast_scaled(const at::Tensor& source, const Fp8Tensor& to) {
  const at::Tensor x = with_row_stride(source);
  Fp8ScaledCastCall call;
  call.source = source_of(x);
  call.blocks = to.scaling == Fp8Scaling::blocks;
  if (to.rows.defined()) {
    call.by_rows = to.rows.mutable_data_ptr(), call.by_rows_stride = to.rows.stride(0);
    call.padded_rows = to.rows.size(0);
    call.row_inverse = to.row_inverse.mutable_data_ptr<float>(), call.row_inverse_stride = to.row_inverse.stride(0);
  }
  if (to.columns.defined()) {
    call.by_columns = to.columns.mutable_data_ptr(), call.by_columns_stride = to.columns.stride(0);
    call.column_inverse = to.column_inverse.mutable_data_ptr<float>();
    call.column_inverse_stride = to.column_inverse.stride(0);
  }
  call.to = (to.rows.defined() ? to.rows : to.columns).scalar_type() == at::kFloat8_e5m2 ? Fp8Element::e5m2
                                                                                         : Fp8Element::e4m3;
  fp8_cast_scaled(call, stream_of(x));
}

at::Tensor fp8_scaled_product(const Fp8Matrix& a, const Fp8Matrix& b, const at::Tensor& bias, at::ScalarType type) {
  const int64_t rows = a.values.size(0), columns = b.values.size(0);
  at::Tensor y = at::empty({rows, columns}, a.values.options().dtype(type));
  const bool fits = bias.defined() && type != at::kFloat && bias.scalar_type() == type && bias.is_contiguous() &&
                    is_aligned(bias.const_data_ptr());
  const bool fused = fits && fp8_matmul(y, a, b, {.bias = bias});
  if (!fused && !fp8_matmul(y, a, b, {}))
    fail(
        "FP8 product by strips and blocks of 128: cuBLAS {} has no kernel for {} x {} x {} on this device; it has them "
        "on Hopper (compute capability 9.0) alone: set fp8_recipe: tensorwise",
        cublas_version(), rows, columns, a.values.size(1));
  if (a.zero_rows > 0) y = y.narrow(0, 0, rows - a.zero_rows).clone();
  return bias.defined() && !fused ? y + bias : y;
}

void accumulate_fp8_product(const at::Tensor& sum, const Fp8Matrix& g, const Fp8Matrix& x) {
  const bool whole = g.scaling == Fp8Scaling::tensor || sum.dim() == 2;
  if (takes_products(sum) && whole && fp8_matmul(sum, g, x, {.accumulate = true})) return;
  if (takes_products(sum) && sum.dim() == 3 && add_parts(sum, g, x)) return;
  const at::Tensor product = fp8_product(g, x, {}, at::kFloat, /*fast=*/false);
  at::Tensor(sum).add_(product.view(sum.sizes()));
}

}  // namespace hexad::modeling::cuda
