// What happens between the product that makes queries, keys and values and the attention: q/k norm, rope, and writing
// keys and values into the paged cache.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace hexad::native::cuda {

// The cache of one layer, as the kernels take it: keys and values, [blocks, kv_heads, block_size, dim] each, bf16, or
// with fp8 e4m3.
struct LayerPools {
  void *keys, *values;
  bool fp8 = false;
};

struct QkvShape {
  int rows, heads, kv_heads, dim, block_size;  // dim: 64 or 128
  float eps;                                   // of the q/k norm
};

// Weights of the q/k norm, bf16 [dim]; null in a family without it.
struct HeadNorms {
  const __nv_bfloat16 *q, *k;
};

// qkv bf16 [rows, (heads + 2 * kv_heads) * dim]: queries are normed and rotated in place; keys, normed and rotated, and
// values go to pools[block][kv_head][offset][dim] with block * block_size + offset = slots[row] (below 0: nowhere);
// e4m3 is the cast of the bf16 that would be there, saturated at 448. cos and sin fp32 [positions, dim / 2].
void rope_append(__nv_bfloat16* qkv, const HeadNorms& norms, const float* cos, const float* sin,
                 const int32_t* positions, const int32_t* slots, const LayerPools& pools, const QkvShape& shape,
                 cudaStream_t stream);

}  // namespace hexad::native::cuda
