// Products with a weight whose rows do not depend on how many rows there are: every element of y is the sum over
// ascending k of one tensor-core instruction's terms, 16 at a time into one fp32 accumulator, in a tile of any size.
#pragma once
#include <cstdint>

struct CUstream_st;

namespace hexad::modeling::cuda {

// y [rows, out] = x [rows, in] * weight [out, in]^T + bias [out] (null: none); bf16, y in bf16 or, `wide`, in fp32.
// Rows of x and y lie x_stride and y_stride elements apart. `in`, `out` and the strides are multiples of 8, pointers
// aligned to 16 bytes.
struct InvariantProduct {
  const void *x = nullptr, *weight = nullptr, *bias = nullptr;
  void* y = nullptr;
  int64_t x_stride = 0, y_stride = 0;
  int rows = 0, in = 0, out = 0;
  bool wide = false;
  int device = 0, processors = 0;  // multiprocessors of the device
};
// By Hopper's instructions where the device runs them, elsewhere by those that every card since 8.0 has.
void invariant_product(const InvariantProduct& call, CUstream_st* stream);

}  // namespace hexad::modeling::cuda
