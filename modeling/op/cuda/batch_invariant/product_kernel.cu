// The product by mma.sync, which every card since compute capability 8.0 has, as CUTLASS's pipelined kernel of Ampere.
// One accumulator takes the terms of a sum, 16 at a time; nothing splits the sum over k.
#include "modeling/op/cuda/batch_invariant/product_kernel.hpp"

#include <cutlass/cutlass.h>
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/device/gemm_universal.h>

#include "modeling/op/cuda/architecture.hpp"
#include "modeling/op/cuda/batch_invariant/hopper/product.hpp"
#include "modeling/op/cuda/cutlass_status.cuh"
#include "modeling/op/cuda/vector.cuh"

namespace hexad::modeling::cuda {
namespace {

using Half = cutlass::bfloat16_t;
using cutlass::gemm::GemmShape;

// A thread block of four warps takes kRows rows of x and kOut of the weight, 32 terms at a time.
template <int kRows, int kOut, typename Out>
using Product = cutlass::gemm::device::GemmUniversal<
    Half, cutlass::layout::RowMajor, Half, cutlass::layout::ColumnMajor, Out, cutlass::layout::RowMajor, float,
    cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80, GemmShape<kRows, kOut, 32>, GemmShape<kRows / 2, kOut / 2, 32>,
    GemmShape<16, 8, 16>, cutlass::epilogue::thread::LinearCombination<Out, 16 / sizeof(Out), float, float>,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>, /*stages=*/4, 8, 8>;

constexpr const char* kOperation = "batch-invariant product";

// With a bias in the type of y: the source of the epilogue, a row that all rows share.
template <int kRows, int kOut, typename Out>
void run(const InvariantProduct& call, const void* bias, CUstream_st* stream) {
  using P = Product<kRows, kOut, Out>;
  typename P::Arguments arguments(cutlass::gemm::GemmUniversalMode::kGemm, {call.rows, call.out, call.in}, 1,
                                  {1.0f, bias ? 1.0f : 0.0f}, call.x, call.weight, bias ? bias : call.y, call.y, 0, 0,
                                  0, 0, call.x_stride, call.in, bias ? 0 : call.y_stride, call.y_stride);
  P product;
  require_cutlass(product.can_implement(arguments), kOperation, "cannot implement it");
  require_cutlass(product.initialize(arguments, nullptr, stream), kOperation, "cannot set it up");
  require_cutlass(product.run(stream), kOperation, "cannot run it");
}

// y [rows, out] += bias [out], in fp32: what an epilogue of fp32 would have added before it stores.
__global__ void add_bias(float* y, int64_t y_stride, const __nv_bfloat16* bias, int out) {
  for (int i = threadIdx.x; i < out; i += blockDim.x) y[blockIdx.x * y_stride + i] += __bfloat162float(bias[i]);
}

template <int kRows, int kOut>
void run(const InvariantProduct& call, CUstream_st* stream) {
  if (!call.wide) return run<kRows, kOut, Half>(call, call.bias, stream);
  run<kRows, kOut, float>(call, nullptr, stream);
  if (!call.bias) return;
  add_bias<<<call.rows, 256, 0, stream>>>(static_cast<float*>(call.y), call.y_stride,
                                          static_cast<const __nv_bfloat16*>(call.bias), call.out);
  check_launch("batch-invariant product: bias");
}

}  // namespace

void invariant_product(const InvariantProduct& call, CUstream_st* stream) {
  if (call.rows == 0) return;
  if (runs_hopper_kernels(call.device)) return hopper_product(call, stream);
  const int64_t large = int64_t(call.out + 127) / 128 * ((call.rows + 127) / 128);
  call.rows <= 64 || large < call.processors ? run<64, 64>(call, stream) : run<128, 128>(call, stream);
}

}  // namespace hexad::modeling::cuda
