#include <cuda_fp8.h>

#include "plugins/native/cuda/attention/attention.hpp"
#include "plugins/native/cuda/early_launch.cuh"

namespace hexad::native::cuda {

// flash/launch.cuh, each instantiated in a file of its own
template <int kTile, int kDim, bool kCausal, typename Kv>
void launch_attention(const AttentionShape& shape, const LevelArrays& level, const __nv_bfloat16* q, LayerPools pools,
                      __nv_bfloat16* out, float* log_sums, cudaStream_t stream);

namespace {

template <int kTile, bool kCausal, typename Kv>
auto launcher_of(int dim) {
  return dim == 128 ? launch_attention<kTile, 128, kCausal, Kv> : launch_attention<kTile, 64, kCausal, Kv>;
}

template <int kTile, bool kCausal>
auto launcher(const AttentionShape& shape, const LayerPools& pools) {
  return pools.fp8 ? launcher_of<kTile, kCausal, __nv_fp8_e4m3>(shape.dim)
                   : launcher_of<kTile, kCausal, __nv_bfloat16>(shape.dim);
}

}  // namespace

void attend_own(const AttentionShape& shape, const LevelArrays& level, const __nv_bfloat16* q, LayerPools pools,
                __nv_bfloat16* partials, float* log_sums, cudaStream_t stream) {
  launcher<16, false>(shape, pools)(shape, level, q, pools, partials, log_sums, stream);
}

void attend_shared(const AttentionShape& shape, const LevelArrays& level, const __nv_bfloat16* q, LayerPools pools,
                   __nv_bfloat16* partials, float* log_sums, cudaStream_t stream) {
  launcher<64, false>(shape, pools)(shape, level, q, pools, partials, log_sums, stream);
}

void attend_causal(const AttentionShape& shape, const LevelArrays& level, const __nv_bfloat16* q, LayerPools pools,
                   __nv_bfloat16* out, cudaStream_t stream) {
  launcher<128, true>(shape, pools)(shape, level, q, pools, out, nullptr, stream);
}

namespace {

constexpr int kWarps = 8;

// A warp a row and head; a lane has kPairs pairs of neighbours.
template <int kDim>
__global__ void __launch_bounds__(kWarps * 32)
    merge_kernel(const __nv_bfloat16* partials, const float* log_sums, const MergeRow* merge, __nv_bfloat16* out,
                 int heads, int64_t tasks) {
  constexpr int kPairs = kDim / 64;
  start_next(), after_earlier();
  const int64_t task = int64_t(blockIdx.x) * kWarps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (task >= tasks) return;
  const int head = int(task % heads);
  const MergeRow row = merge[task / heads];
  float2 sum[kPairs] = {};
  float largest = -INFINITY, total = 0;
  const int count = row.shared_count + row.own_count;
  for (int i = 0; i < count; ++i) {
    const int64_t partial = i < row.shared_count ? row.shared + i : row.own + i - row.shared_count;
    const float log_sum = log_sums[partial * heads + head], next = fmaxf(largest, log_sum);
    if (next == -INFINITY) continue;
    const float keep = exp2f(largest - next), share = exp2f(log_sum - next);
    total = total * keep + share;
    largest = next;
    const auto* part = reinterpret_cast<const __nv_bfloat162*>(partials + (partial * heads + head) * kDim);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      const float2 x = __bfloat1622float2(part[j * 32 + lane]);
      sum[j] = {sum[j].x * keep + x.x * share, sum[j].y * keep + x.y * share};
    }
  }
  const float scale = total > 0 ? 1.0f / total : 0.0f;
  auto* to = reinterpret_cast<__nv_bfloat162*>(out + task * kDim);
#pragma unroll
  for (int j = 0; j < kPairs; ++j) to[j * 32 + lane] = __floats2bfloat162_rn(sum[j].x * scale, sum[j].y * scale);
}

}  // namespace

void merge_partials(const __nv_bfloat16* partials, const float* log_sums, const MergeRow* merge, __nv_bfloat16* out,
                    int rows, int heads, int dim, cudaStream_t stream) {
  const int64_t tasks = int64_t(rows) * heads;
  if (tasks == 0) return;
  const auto kernel = dim == 128 ? merge_kernel<128> : merge_kernel<64>;
  launch_early("merging of attention", kernel, unsigned((tasks + kWarps - 1) / kWarps), kWarps * 32, stream, partials,
               log_sums, merge, out, heads, tasks);
}

}  // namespace hexad::native::cuda
