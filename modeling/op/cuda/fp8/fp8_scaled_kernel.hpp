// FP8 copies of a matrix with a scale for every strip of 128 elements or every block of 128 x 128, in one pass.
#pragma once
#include <cstdint>

#include "modeling/op/cuda/fp8/fp8_kernel.hpp"

namespace hexad::modeling::cuda {

// The layouts of op/fp8/blocks.hpp. Columns of the source are a multiple of 16, and so is `padded_rows`, at least its
// rows; what is written beside it is zeros. by_rows [padded_rows, C128] and by_columns [C, R128] may be null, with
// their scales; all begin on 16 bytes. Strides are in elements.
struct Fp8ScaledCastCall {
  Fp8Source source;
  Fp8Element to = Fp8Element::e4m3;
  bool blocks = false;
  void* by_rows = nullptr;
  int64_t by_rows_stride = 0, padded_rows = 0;
  float* row_inverse = nullptr;
  int64_t row_inverse_stride = 0;
  void* by_columns = nullptr;
  int64_t by_columns_stride = 0;
  float* column_inverse = nullptr;
  int64_t column_inverse_stride = 0;
};
void fp8_cast_scaled(const Fp8ScaledCastCall& call, CUstream_st* stream);

}  // namespace hexad::modeling::cuda
