// FP8 copies of a matrix, by rows and by columns in one pass: with one scale for all of it, made of its largest
// magnitude; with one a row; and with one a strip or a block.
#pragma once
#include <cstdint>

#include "modeling/op/cuda/element.hpp"

struct CUstream_st;

namespace hexad::modeling::cuda {

enum class Fp8Element { e4m3, e5m2 };

// [rows, columns] with `stride` elements between rows; columns are a multiple of 8, rows begin on 16 bytes.
struct Fp8Source {
  int64_t rows = 0, columns = 0, stride = 0;
  const void* x = nullptr;
  Element type = Element::f32;
};

// *largest = max(*largest, |x|) on the device; something that is not a number is larger than infinity.
void fp8_largest(const Fp8Source& source, float* largest, CUstream_st* stream);

struct Fp8CastCall {
  Fp8Source source;  // the first of `count`
  Fp8Element to = Fp8Element::e4m3;
  const float* largest = nullptr;  // [count]: of the tensor that this is a part of
  float* inverse = nullptr;        // [count]: takes 1 / factor, unless null
  int count = 1;                   // matrices of one size, with these elements between them, all multiples of 8
  int64_t source_distance = 0, by_rows_distance = 0, by_columns_distance = 0;
  // Either may be null. by_rows [rows, columns]; by_columns [columns, padded_rows] with zeros behind the rows. Strides
  // and padded_rows are multiples of 8, both begin on 8 bytes.
  void* by_rows = nullptr;
  int64_t by_rows_stride = 0;
  void* by_columns = nullptr;
  int64_t by_columns_stride = 0, padded_rows = 0;
};
// round(x * factor), to nearest even, with factor = (largest number of the type) / *largest, 1 if that is 0.
void fp8_cast(const Fp8CastCall& call, CUstream_st* stream);

// Rows alone, each with a scale of its own: values [rows, columns] in e4m3, contiguous; inverse [rows]: x = value *
// inverse.
void fp8_cast_rows(const Fp8Source& source, void* values, float* inverse, CUstream_st* stream);

// A scale for every strip of 128 elements or every block of 128 x 128, in the layouts of op/fp8/blocks.hpp. Columns of
// the source are a multiple of 16, and so is `padded_rows`, at least its rows; what is written beside it is zeros.
// by_rows [padded_rows, C128] and by_columns [C, R128] may be null, with their scales; all begin on 16 bytes. Strides
// are in elements.
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
