#include "plugins/native/cuda/early_launch.cuh"
#include "plugins/native/cuda/fp8/fp8_row.cuh"
#include "plugins/native/cuda/norm.hpp"

namespace hexad::native::cuda {
namespace {

enum class Source { embedding, added, added_rows };

struct Args {
  const __nv_bfloat16 *table, *weight;  // table: embedding or delta
  const int32_t *ids, *draws;           // ids: of tokens or rows
  float* residual;
  __nv_bfloat16* normed;
  int hidden;
  float eps;
  Fp8Out fp8 = {};  // in place of normed
};

__device__ float4 widened(const __nv_bfloat16* from) {
  const uint2 bits = *reinterpret_cast<const uint2*>(from);
  const float2 a = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&bits.x));
  const float2 b = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&bits.y));
  return {a.x, a.y, b.x, b.y};
}

__device__ void store(__nv_bfloat16* to, const float4& x) {
  const __nv_bfloat162 a = __floats2bfloat162_rn(x.x, x.y), b = __floats2bfloat162_rn(x.z, x.w);
  *reinterpret_cast<uint2*>(to) = {*reinterpret_cast<const uint32_t*>(&a), *reinterpret_cast<const uint32_t*>(&b)};
}

template <int kThreads>
__device__ float block_sum(float x) {
  __shared__ float parts[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < kThreads / 32; ++i) sum += parts[i];
  return sum;
}

__device__ float4 scaled(const float4& x, float inverse, const float4& w) {
  return {x.x * inverse * w.x, x.y * inverse * w.y, x.z * inverse * w.z, x.w * inverse * w.w};
}

// The block's row y, as its threads hold it, in FP8.
template <int kThreads, int kVectors>
__device__ void store_fp8(const Fp8Out& out, int64_t row, int hidden, const float4 (&y)[kVectors]) {
  uint32_t largest = 0;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    if ((i * kThreads + threadIdx.x) * 4 >= hidden) continue;
    largest = max(largest, max(magnitude(y[i].x), magnitude(y[i].y)));
    largest = max(largest, max(magnitude(y[i].z), magnitude(y[i].w)));
  }
  const float factor = fp8_factor(block_largest<kThreads>(largest));
  if (threadIdx.x == 0) out.scales[row] = __frcp_rn(factor);
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int at = (i * kThreads + threadIdx.x) * 4;
    if (at >= hidden) continue;
    *reinterpret_cast<uint32_t*>(out.values + row * hidden + at) = fp8_word(y[i].x, y[i].y, y[i].z, y[i].w, factor);
  }
}

// One row a block; a thread keeps kVectors * 4 of its elements in registers.
template <Source kSource, int kThreads, int kVectors>
__global__ void __launch_bounds__(kThreads) norm_kernel(Args a) {
  start_next(), after_earlier();
  const int64_t out_row = blockIdx.x;
  int64_t from = out_row, row = out_row;
  if constexpr (kSource == Source::embedding) {
    const int id = a.ids[row];
    from = max(id < 0 ? a.draws[~id] : id, 0);
  }
  if constexpr (kSource == Source::added_rows) from = row = a.ids[out_row];
  const __nv_bfloat16* table = a.table + from * a.hidden;
  float* residual = a.residual + row * a.hidden;
  float4 x[kVectors];
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int at = (i * kThreads + threadIdx.x) * 4;
    if (at >= a.hidden) continue;
    x[i] = widened(table + at);
    if constexpr (kSource != Source::embedding) {
      const float4 r = *reinterpret_cast<const float4*>(residual + at);
      x[i] = {x[i].x + r.x, x[i].y + r.y, x[i].z + r.z, x[i].w + r.w};
    }
    if constexpr (kSource != Source::added_rows) *reinterpret_cast<float4*>(residual + at) = x[i];
    squares += x[i].x * x[i].x + x[i].y * x[i].y + x[i].z * x[i].z + x[i].w * x[i].w;
  }
  const float inverse = rsqrtf(block_sum<kThreads>(squares) / float(a.hidden) + a.eps);
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int at = (i * kThreads + threadIdx.x) * 4;
    if (at >= a.hidden) continue;
    x[i] = scaled(x[i], inverse, widened(a.weight + at));
    if (a.normed) store(a.normed + out_row * a.hidden + at, x[i]);
  }
  if (!a.normed) store_fp8<kThreads>(a.fp8, out_row, a.hidden, x);
}

template <Source kSource>
void launch(const Args& args, int rows, cudaStream_t stream) {
  if (rows == 0) return;
  if (args.hidden <= 1024) {
    launch_early("RMS norm", norm_kernel<kSource, 128, 2>, rows, 128, stream, args);
  } else if (args.hidden <= 4096) {
    launch_early("RMS norm", norm_kernel<kSource, 256, 4>, rows, 256, stream, args);
  } else {
    launch_early("RMS norm", norm_kernel<kSource, 512, kMaxHidden / 2048>, rows, 512, stream, args);
  }
}

}  // namespace

void embed_norm(const __nv_bfloat16* embedding, const int32_t* ids, const int32_t* draws, const __nv_bfloat16* weight,
                float* residual, __nv_bfloat16* normed, const NormShape& shape, cudaStream_t stream) {
  launch<Source::embedding>({embedding, weight, ids, draws, residual, normed, shape.hidden, shape.eps}, shape.rows,
                            stream);
}

void add_norm(const __nv_bfloat16* delta, const __nv_bfloat16* weight, float* residual, __nv_bfloat16* normed,
              const NormShape& shape, cudaStream_t stream) {
  launch<Source::added>({delta, weight, nullptr, nullptr, residual, normed, shape.hidden, shape.eps}, shape.rows,
                        stream);
}

void embed_norm(const __nv_bfloat16* embedding, const int32_t* ids, const int32_t* draws, const __nv_bfloat16* weight,
                float* residual, const Fp8Out& normed, const NormShape& shape, cudaStream_t stream) {
  launch<Source::embedding>(
      {embedding, weight, ids, draws, residual, /*normed=*/nullptr, shape.hidden, shape.eps, normed}, shape.rows,
      stream);
}

void add_norm(const __nv_bfloat16* delta, const __nv_bfloat16* weight, float* residual, const Fp8Out& normed,
              const NormShape& shape, cudaStream_t stream) {
  launch<Source::added>(
      {delta, weight, nullptr, nullptr, residual, /*normed=*/nullptr, shape.hidden, shape.eps, normed}, shape.rows,
      stream);
}

void add_norm_of_rows(const int32_t* rows, const __nv_bfloat16* delta, const __nv_bfloat16* weight,
                      const float* residual, __nv_bfloat16* out, const NormShape& shape, cudaStream_t stream) {
  launch<Source::added_rows>({delta, weight, rows, nullptr, const_cast<float*>(residual), out, shape.hidden, shape.eps},
                             shape.rows, stream);
}

}  // namespace hexad::native::cuda
