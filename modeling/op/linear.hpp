// Matrix products of the transformer.
#pragma once
#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// x [T, in], weight [out, in], bias [out] or undefined -> [T, out]. With row_tile n > 0 the product runs in GEMMs of
// exactly n rows, so that a row's result does not depend on T.
at::Tensor apply_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {},
                        int64_t row_tile = 0);

}  // namespace hexad::modeling
