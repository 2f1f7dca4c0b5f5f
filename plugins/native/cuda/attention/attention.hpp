// Attention over the paged cache by FlashInfer's kernels, cut into work items by our own plan
// (model/attention_plan.hpp).
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "plugins/native/cuda/attention/rope_append.hpp"
#include "plugins/native/model/attention_plan.hpp"

namespace hexad::native::cuda {

// Of one level of the plan, on the device. Requests are runs of query rows that see the same blocks.
struct LevelArrays {
  const int32_t *q_indptr, *o_indptr, *block_indptr, *last_block_size;  // [requests + 1] x 3, [requests]
  const int32_t* blocks;                                                // [block_indptr[requests]]
  const int32_t *request, *tile, *chunk;                                // [items]
  const bool* valid;                                                    // [items]: false is an item that does nothing
  const int32_t* chunk_size;                                            // [1], in positions
  int requests, items;
};

struct AttentionShape {
  int heads, kv_heads, dim, block_size;  // dim: 64 or 128
  int64_t q_stride;                      // elements from a query row to the next
};

// Query rows that see the whole of their blocks. An item attends to one chunk of the keys of one tile of 16 (`own`) or
// 64 (`shared`) rows x heads, and writes a partial result: bf16 [partials, heads, dim] and the base-2 logarithm of its
// sum of exponentials, fp32 [partials, heads]. The partial of row r (counted in its request) and chunk c of n lies at
// o_indptr[request] + r * n + c.
void attend_own(const AttentionShape& shape, const LevelArrays& level, const __nv_bfloat16* q, LayerPools pools,
                __nv_bfloat16* partials, float* log_sums, cudaStream_t stream);
void attend_shared(const AttentionShape& shape, const LevelArrays& level, const __nv_bfloat16* q, LayerPools pools,
                   __nv_bfloat16* partials, float* log_sums, cudaStream_t stream);

// The same as attend_own(), for is_row_shape() and a cache in bf16: quicker where rows are few. A tile is all the heads
// that share keys. Launched early (early_launch.cuh).
bool is_row_shape(const AttentionShape& shape);
void attend_rows(const AttentionShape& shape, const LevelArrays& level, const __nv_bfloat16* q, LayerPools pools,
                 __nv_bfloat16* partials, float* log_sums, cudaStream_t stream);

// Chunks of prompts: the last row of a request sees all of its positions, the one before it one less, and so on. Tiles
// of 128 rows x heads, one chunk each; results go to rows o_indptr[request] ... of out, bf16 [rows, heads, dim].
void attend_causal(const AttentionShape& shape, const LevelArrays& level, const __nv_bfloat16* q, LayerPools pools,
                   __nv_bfloat16* out, cudaStream_t stream);

// out[r] bf16 [rows, heads, dim] = the attention over the union of the partials' keys; 0 where there are none. Launched
// early: everything that it reads comes from `stream`.
void merge_partials(const __nv_bfloat16* partials, const float* log_sums, const MergeRow* merge, __nv_bfloat16* out,
                    int rows, int heads, int dim, cudaStream_t stream);

}  // namespace hexad::native::cuda
