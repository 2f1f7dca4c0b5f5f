#include "plugins/native/cuda/early_launch.cuh"
#include "plugins/native/cuda/fp8/fp8_row.cuh"
#include "plugins/native/cuda/fp8/fp8_rows.hpp"

namespace hexad::native::cuda {
namespace {

constexpr int kVector = 8;  // elements of 16 bytes

__device__ void widen(const __nv_bfloat16* from, float (&to)[kVector]) {
  const uint4 words = *reinterpret_cast<const uint4*>(from);
  const uint32_t pairs[] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 two = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&pairs[i]));
    to[2 * i] = two.x, to[2 * i + 1] = two.y;
  }
}

struct Plain {
  const __nv_bfloat16* x;
  __device__ void read(int64_t row, int width, int at, float (&y)[kVector]) const { widen(x + row * width + at, y); }
};

struct Swiglu {
  const __nv_bfloat16* gate_up;
  __device__ void read(int64_t row, int width, int at, float (&y)[kVector]) const {
    const __nv_bfloat16* gate = gate_up + row * 2 * width + at;
    float up[kVector];
    widen(gate, y), widen(gate + width, up);
#pragma unroll
    for (int j = 0; j < kVector; ++j) y[j] = y[j] / (1.0f + __expf(-y[j])) * up[j];
  }
};

// A block a row, which its threads hold between the search and the cast.
template <typename Source, int kThreads, int kVectors>
__global__ void __launch_bounds__(kThreads) rows_kernel(Source source, Fp8Out out, int width) {
  start_next(), after_earlier();
  const int64_t row = blockIdx.x;
  float y[kVectors][kVector];
  uint32_t largest = 0;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int at = (i * kThreads + threadIdx.x) * kVector;
    if (at >= width) continue;
    source.read(row, width, at, y[i]);
#pragma unroll
    for (int j = 0; j < kVector; ++j) largest = max(largest, magnitude(y[i][j]));
  }
  const float factor = fp8_factor(block_largest<kThreads>(largest));
  if (threadIdx.x == 0) out.scales[row] = __frcp_rn(factor);
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int at = (i * kThreads + threadIdx.x) * kVector;
    if (at >= width) continue;
    const float* v = y[i];
    *reinterpret_cast<uint2*>(out.values + row * width + at) =
        make_uint2(fp8_word(v[0], v[1], v[2], v[3], factor), fp8_word(v[4], v[5], v[6], v[7], factor));
  }
}

template <typename Source>
void launch(const Source& source, const Fp8Out& out, int rows, int width, cudaStream_t stream) {
  if (rows == 0) return;
  if (width <= 1024) {
    launch_early("cast to FP8", rows_kernel<Source, 128, 1>, rows, 128, stream, source, out, width);
  } else if (width <= 4096) {
    launch_early("cast to FP8", rows_kernel<Source, 256, 2>, rows, 256, stream, source, out, width);
  } else if (width <= 16384) {
    launch_early("cast to FP8", rows_kernel<Source, 512, 4>, rows, 512, stream, source, out, width);
  } else {
    launch_early("cast to FP8", rows_kernel<Source, 512, kMostFp8Width / 4096>, rows, 512, stream, source, out, width);
  }
}

}  // namespace

void fp8_rows(const __nv_bfloat16* x, const Fp8Out& out, int rows, int width, cudaStream_t stream) {
  launch(Plain{x}, out, rows, width, stream);
}

void swiglu_fp8(const __nv_bfloat16* gate_up, const Fp8Out& out, int rows, int width, cudaStream_t stream) {
  launch(Swiglu{gate_up}, out, rows, width, stream);
}

}  // namespace hexad::native::cuda
