// What the kernels share: elements read and written 16 bytes at a time, and sums over a group of threads.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "modeling/op/cuda/element.hpp"

namespace hexad::modeling::cuda {

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline float to_float(__half x) { return __half2float(x); }

template <typename T>
__device__ inline T from_float(float x);
template <>
__device__ inline float from_float<float>(float x) {
  return x;
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ inline __half from_float<__half>(float x) {
  return __float2half_rn(x);
}

// N elements that are aligned to their common size, at most 16 bytes a word.
template <typename T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
  T values[N];
};

template <int N, typename T>
__device__ inline void load(const T* from, float (&to)[N]) {
  const Pack<T, N> pack = *reinterpret_cast<const Pack<T, N>*>(from);
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = to_float(pack.values[i]);
}

template <int N, typename T>
__device__ inline void store(T* to, const float (&from)[N]) {
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.values[i] = from_float<T>(from[i]);
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

// The sum over the kThreads threads (a warp, or the whole block) of each group; `scratch` holds a float for each warp
// of the block. Every thread of the block calls it.
template <int kThreads>
__device__ inline float group_sum(float value, float* scratch) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  if constexpr (kThreads > 32) {
    constexpr int kWarps = kThreads / 32;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    __syncthreads();  // an earlier sum has been read
    if (lane == 0) scratch[warp] = value;
    __syncthreads();
    value = 0;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) value += scratch[i];
  }
  return value;
}

// Calls body with a value of the element's type.
template <typename Body>
void with_element(Element element, Body&& body) {
  switch (element) {
    case Element::f32: return body(float{});
    case Element::bf16: return body(__nv_bfloat16{});
    case Element::f16: return body(__half{});
  }
}

inline void check_launch(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw std::runtime_error(std::string(kernel) + ": " + cudaGetErrorString(error));
}

inline int blocks_for(int64_t items, int64_t per_block) {
  return static_cast<int>((items + per_block - 1) / per_block);
}

}  // namespace hexad::modeling::cuda
