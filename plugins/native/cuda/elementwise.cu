#include "plugins/native/cuda/early_launch.cuh"
#include "plugins/native/cuda/elementwise.hpp"

namespace hexad::native::cuda {
namespace {

constexpr int kThreads = 256, kVector = 8;  // elements of 16 bytes

__device__ uint32_t swiglu_pair(uint32_t gate, uint32_t up) {
  const float2 g = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&gate));
  const float2 u = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&up));
  const __nv_bfloat162 y = __floats2bfloat162_rn(g.x / (1.0f + __expf(-g.x)) * u.x, g.y / (1.0f + __expf(-g.y)) * u.y);
  return *reinterpret_cast<const uint32_t*>(&y);
}

__global__ void __launch_bounds__(kThreads) swiglu_kernel(const uint4* gate_up, uint4* out, int width, int64_t count) {
  start_next(), after_earlier();
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const int64_t from = i / width * 2 * width + i % width;
  const uint4 g = gate_up[from], u = gate_up[from + width];
  out[i] = {swiglu_pair(g.x, u.x), swiglu_pair(g.y, u.y), swiglu_pair(g.z, u.z), swiglu_pair(g.w, u.w)};
}

__global__ void __launch_bounds__(kThreads)
    copy_blocks_kernel(uint4* cache, int64_t pool_stride, int64_t block, const int32_t* pairs) {
  uint4* pool = cache + blockIdx.y * pool_stride;
  const uint4* from = pool + pairs[2 * blockIdx.x] * block;
  uint4* to = pool + pairs[2 * blockIdx.x + 1] * block;
  for (int64_t i = threadIdx.x; i < block; i += kThreads) to[i] = from[i];
}

}  // namespace

void swiglu(const __nv_bfloat16* gate_up, __nv_bfloat16* out, int rows, int width, cudaStream_t stream) {
  const int64_t count = int64_t(rows) * width / kVector;
  if (count == 0) return;
  launch_early("SwiGLU", swiglu_kernel, unsigned((count + kThreads - 1) / kThreads), kThreads, stream,
               reinterpret_cast<const uint4*>(gate_up), reinterpret_cast<uint4*>(out), width / kVector, count);
}

void copy_blocks(void* cache, int pools, int64_t pool_bytes, int64_t block_bytes, const int32_t* pairs, int count,
                 cudaStream_t stream) {
  if (count == 0) return;
  constexpr int64_t kBytes = sizeof(uint4);
  copy_blocks_kernel<<<dim3(unsigned(count), unsigned(pools)), kThreads, 0, stream>>>(
      static_cast<uint4*>(cache), pool_bytes / kBytes, block_bytes / kBytes, pairs);
  check(cudaGetLastError(), "copies of cache blocks");
}

}  // namespace hexad::native::cuda
