// Gradients of the weights of many experts, added to fp32 sums in the epilogue of one grouped GEMM (CUTLASS, Hopper).
#pragma once
#include <cstdint>

struct CUstream_st;

namespace hexad::modeling::cuda {

// sum[e] += grad_e^T x_e for each expert e, whose rows end at ends[e] (it may have none). grad [rows, out] and x
// [rows, in] are bf16 with grad_stride and x_stride elements between rows. An expert's sum [out, in] is `parts` runs of
// out / parts rows at sum + e * sum_stride + p * part_stride. in and out / parts are multiples of 8, strides of 8 (of
// sums: 4, and they may be negative), and all begin on 16 bytes.
struct GroupedGradientCall {
  const void* grad = nullptr;
  const void* x = nullptr;
  const int32_t* ends = nullptr;
  float* sum = nullptr;
  int64_t grad_stride = 0, x_stride = 0, sum_stride = 0, part_stride = 0;
  int experts = 0, parts = 1, out = 0, in = 0;
  int device = 0, processors = 0;  // of the device
};
// Bytes of scratch memory on the device.
int64_t grouped_gradient_scratch(const GroupedGradientCall& call);
// Throws std::runtime_error when CUTLASS refuses.
void add_grouped_gradient(const GroupedGradientCall& call, void* scratch, CUstream_st* stream);

}  // namespace hexad::modeling::cuda
