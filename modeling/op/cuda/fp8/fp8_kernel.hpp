// FP8 copies of a matrix: its largest magnitude, then the values by rows and by columns in one pass.
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

}  // namespace hexad::modeling::cuda
