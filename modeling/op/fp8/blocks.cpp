#include "modeling/op/fp8/blocks.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "modeling/op/row/adjacent.hpp"
#include "modeling/op/cuda/operators.hpp"

namespace hexad::modeling {
namespace {

int64_t rounded_up(int64_t size, int64_t multiple) { return (size + multiple - 1) / multiple * multiple; }

at::Tensor joined(const std::vector<at::Tensor>& parts, int64_t dim) {
  if (parts.size() == 1) return parts[0];
  const at::Tensor whole = parts[0].is_cuda() ? adjacent(parts, dim) : at::Tensor();
  return whole.defined() ? whole : at::cat(parts, dim);
}

// fp32 with zeros behind.
at::Tensor padded(const at::Tensor& x, int64_t rows, int64_t columns) {
  return at::constant_pad_nd(x.to(at::kFloat), {0, columns - x.size(1), 0, rows - x.size(0)});
}

struct Cast {
  at::Tensor values, inverse;
};

// x fp32 [M, K], K a multiple of 128.
Cast cast_strips(const at::Tensor& x, at::ScalarType type) {
  const at::Tensor strips = x.contiguous().view({x.size(0), -1, kFp8Block});
  const at::Tensor factor = fp8_factor(strips.abs().amax(-1), type);
  return {(strips * factor.unsqueeze(-1)).to(type).view(x.sizes()), factor.reciprocal().t().contiguous()};
}

// x fp32 [R, C] -> values [R, C128].
Cast cast_blocks(const at::Tensor& x, at::ScalarType type) {
  const int64_t rows = rounded_up(x.size(0), kFp8Block), columns = rounded_up(x.size(1), kFp8Block);
  const at::Tensor blocks = padded(x, rows, columns).contiguous().view({rows / kFp8Block, kFp8Block, -1, kFp8Block});
  const at::Tensor factor = fp8_factor(blocks.abs().amax({1, 3}), type);
  const at::Tensor values = (blocks * factor.unsqueeze(1).unsqueeze(3)).to(type).view({rows, columns});
  const int64_t across = rounded_up(factor.size(1), 4);
  return {values.narrow(0, 0, x.size(0)), at::constant_pad_nd(factor.reciprocal(), {0, across - factor.size(1)})};
}

// What the kernels write.
Fp8Tensor empty_fp8(const at::Tensor& x, at::ScalarType type, Fp8Scaling scaling, Fp8Copies copies) {
  const auto bytes = x.options().dtype(at::kByte), fp32 = x.options().dtype(at::kFloat);
  const bool blocks = scaling == Fp8Scaling::blocks;
  const int64_t rows = x.size(0), columns = x.size(1), padded_rows = blocks ? rows : rounded_up(rows, kFp8Multiple);
  const int64_t long_rows = rounded_up(rows, kFp8Block), long_columns = rounded_up(columns, kFp8Block);
  const int64_t down = long_rows / kFp8Block, across = long_columns / kFp8Block;
  Fp8Tensor out;
  out.scaling = scaling, out.zero_rows = padded_rows - rows;
  if (copies != Fp8Copies::columns) {
    out.rows = at::empty({padded_rows, long_columns}, bytes).view(type);
    out.row_inverse = blocks ? at::empty({down, rounded_up(across, 4)}, fp32) : at::empty({across, padded_rows}, fp32);
  }
  if (copies != Fp8Copies::rows) {
    out.columns = at::empty({columns, long_rows}, bytes).view(type);
    out.column_inverse = blocks ? at::empty({across, rounded_up(down, 4)}, fp32) : at::empty({down, columns}, fp32);
  }
  return out;
}

}  // namespace

Fp8Tensor to_fp8_strips(const std::vector<at::Tensor>& parts, at::ScalarType type, Fp8Copies copies) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = joined(parts, 1);
  if (cuda::has_kernels(x)) {
    const Fp8Tensor out = empty_fp8(x, type, Fp8Scaling::strips, copies);
    cuda::fp8_cast_scaled(x, out);
    return out;
  }
  const int64_t rows = rounded_up(x.size(0), kFp8Multiple);
  Fp8Tensor out;
  out.scaling = Fp8Scaling::strips, out.zero_rows = rows - x.size(0);
  if (copies != Fp8Copies::columns) {
    const Cast cast = cast_strips(padded(x, rows, rounded_up(x.size(1), kFp8Block)), type);
    out.rows = cast.values, out.row_inverse = cast.inverse;
  }
  if (copies != Fp8Copies::rows) {
    const Cast cast = cast_strips(padded(x, rounded_up(x.size(0), kFp8Block), x.size(1)).t(), type);
    out.columns = cast.values, out.column_inverse = cast.inverse;
  }
  return out;
}

Fp8Tensor to_fp8_blocks(const std::vector<at::Tensor>& weights, Fp8Copies copies) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = joined(weights, 0);
  const at::ScalarType type = at::kFloat8_e4m3fn;
  if (cuda::has_kernels(x)) {
    const Fp8Tensor out = empty_fp8(x, type, Fp8Scaling::blocks, copies);
    cuda::fp8_cast_scaled(x, out);
    return out;
  }
  Fp8Tensor out;
  out.scaling = Fp8Scaling::blocks;
  if (copies != Fp8Copies::columns) {
    const Cast cast = cast_blocks(x, type);
    out.rows = cast.values, out.row_inverse = cast.inverse;
  }
  if (copies != Fp8Copies::rows) {
    const Cast cast = cast_blocks(x.t(), type);
    out.columns = cast.values, out.column_inverse = cast.inverse;
  }
  return out;
}

at::Tensor without_scales(const Fp8Matrix& x) {
  const int64_t rows = x.values.size(0), strips = x.values.size(1) / kFp8Block;
  const at::Tensor values = x.values.to(at::kFloat).view({rows, strips, kFp8Block});
  const at::Tensor scales = x.scaling == Fp8Scaling::strips
                                ? x.inverse.t()
                                : x.inverse.narrow(1, 0, strips).repeat_interleave(kFp8Block, 0).narrow(0, 0, rows);
  return (values * scales.unsqueeze(-1)).view(x.values.sizes());
}

}  // namespace hexad::modeling
