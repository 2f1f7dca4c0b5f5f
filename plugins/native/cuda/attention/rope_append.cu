#include <cuda_fp8.h>

#include "plugins/native/cuda/early_launch.cuh"
#include "plugins/native/cuda/attention/rope_append.hpp"

namespace hexad::native::cuda {
namespace {

constexpr int kWarps = 8;

__device__ inline void store(__nv_bfloat16* to, float x) { *to = __float2bfloat16_rn(x); }
__device__ inline void store(__nv_fp8_e4m3* to, float x) {
  to->__x = __nv_cvt_float_to_fp8(__bfloat162float(__float2bfloat16_rn(x)), __NV_SATFINITE, __NV_E4M3);
}

// A warp a head; a lane has kPairs elements of the first half of the head and their partners of the second.
template <int kDim, bool kNorm, typename Kv>
__global__ void __launch_bounds__(kWarps * 32)
    rope_append_kernel(__nv_bfloat16* qkv, HeadNorms norms, const float* cos, const float* sin,
                       const int32_t* positions, const int32_t* slots, LayerPools pools, QkvShape s) {
  constexpr int kHalf = kDim / 2, kPairs = kHalf / 32;
  start_next(), after_earlier();
  const int all_heads = s.heads + 2 * s.kv_heads, lane = threadIdx.x % 32;
  const int64_t task = int64_t(blockIdx.x) * kWarps + threadIdx.x / 32;
  const int64_t row = task / all_heads;
  const int head = int(task % all_heads);
  if (row >= s.rows) return;
  const bool is_query = head < s.heads, is_value = head >= s.heads + s.kv_heads;
  const int slot = slots[row];
  if (!is_query && slot < 0) return;
  __nv_bfloat16* x = qkv + task * kDim;
  float a[kPairs], b[kPairs];
#pragma unroll
  for (int i = 0; i < kPairs; ++i) {
    a[i] = __bfloat162float(x[i * 32 + lane]);
    b[i] = __bfloat162float(x[i * 32 + lane + kHalf]);
  }
  if (!is_value) {
    if constexpr (kNorm) {
      float squares = 0;
#pragma unroll
      for (int i = 0; i < kPairs; ++i) squares += a[i] * a[i] + b[i] * b[i];
      for (int step = 16; step > 0; step /= 2) squares += __shfl_xor_sync(~0u, squares, step);
      const float inverse = rsqrtf(squares / kDim + s.eps);
      const __nv_bfloat16* weight = is_query ? norms.q : norms.k;
#pragma unroll
      for (int i = 0; i < kPairs; ++i) {
        a[i] *= inverse * __bfloat162float(weight[i * 32 + lane]);
        b[i] *= inverse * __bfloat162float(weight[i * 32 + lane + kHalf]);
      }
    }
    const int64_t angle = int64_t(positions[row]) * kHalf;
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const float c = cos[angle + i * 32 + lane], d = sin[angle + i * 32 + lane], first = a[i];
      a[i] = first * c - b[i] * d;
      b[i] = b[i] * c + first * d;
    }
  }
  const auto write = [&](auto* to) {
#pragma unroll
    for (int i = 0; i < kPairs; ++i) store(to + i * 32 + lane, a[i]), store(to + i * 32 + lane + kHalf, b[i]);
  };
  if (is_query) return write(x);
  const int kv_head = is_value ? head - s.heads - s.kv_heads : head - s.heads;
  const int64_t place = (int64_t(slot / s.block_size) * s.kv_heads + kv_head) * s.block_size + slot % s.block_size;
  write(static_cast<Kv*>(is_value ? pools.values : pools.keys) + place * kDim);
}

template <typename Kv>
auto kernel_of(int dim, bool norm) {
  if (dim == 128) return norm ? rope_append_kernel<128, true, Kv> : rope_append_kernel<128, false, Kv>;
  return norm ? rope_append_kernel<64, true, Kv> : rope_append_kernel<64, false, Kv>;
}

}  // namespace

void rope_append(__nv_bfloat16* qkv, const HeadNorms& norms, const float* cos, const float* sin,
                 const int32_t* positions, const int32_t* slots, const LayerPools& pools, const QkvShape& shape,
                 cudaStream_t stream) {
  if (shape.rows == 0) return;
  const int64_t tasks = int64_t(shape.rows) * (shape.heads + 2 * shape.kv_heads);
  const auto blocks = static_cast<unsigned>((tasks + kWarps - 1) / kWarps);
  const bool norm = norms.q != nullptr;
  const auto kernel = pools.fp8 ? kernel_of<__nv_fp8_e4m3>(shape.dim, norm) : kernel_of<__nv_bfloat16>(shape.dim, norm);
  launch_early("rope and cache append", kernel, blocks, kWarps * 32, stream, qkv, norms, cos, sin, positions, slots,
               pools, shape);
}

}  // namespace hexad::native::cuda
