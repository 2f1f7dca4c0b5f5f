// silu(gate) * up of two column blocks of one projection.
#pragma once
#include <cstdint>

#include "modeling/op/cuda/element.hpp"

struct CUstream_st;

namespace hexad::modeling::cuda {

// gate and up: [rows, columns] with gate_stride, up_stride elements between rows. columns and strides are multiples of
// 8.
struct SwigluCall {
  int64_t rows = 0, columns = 0, gate_stride = 0, up_stride = 0;
  const void* gate = nullptr;
  const void* up = nullptr;
  Element type = Element::f32;
};
// y [rows, columns], contiguous.
void swiglu_forward(const SwigluCall& call, void* y, CUstream_st* stream);
// grad_y [rows, columns] -> grads [rows, 2 * columns]: of gate, then of up.
void swiglu_backward(const SwigluCall& call, const void* grad_y, void* grads, CUstream_st* stream);

}  // namespace hexad::modeling::cuda
