// What the batch-invariant decoder needs between modeling's kernels: copies, and the log-probs of what was drawn.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#include "plugins/native/cuda/attention/rope_append.hpp"
#include "plugins/native/cuda/sample/sample.hpp"

namespace hexad::native::cuda {

// out[i] = table[rows[i]] for i < count: rows of `bytes`, a multiple of 16.
void gather_rows(const void* table, const int32_t* rows, void* out, int64_t bytes, int count, cudaStream_t stream);

// Keys and values of qkv bf16 [rows, (heads + 2 * kv_heads) * dim], finished, go to the cache as rope_append() lays it
// out. slots[row] below 0: nowhere.
void append_keys_values(const __nv_bfloat16* qkv, const int32_t* slots, __nv_bfloat16* keys, __nv_bfloat16* values,
                        const QkvShape& shape, cudaStream_t stream);

// Each draw's row, the reciprocal of its temperature (greedy: 1) and its token, as softmax_statistics() takes them; row
// 0 and no token where there is no draw.
struct DrawnRows {
  int32_t* source;
  float* scale;
  int64_t* targets;
};
void describe_draws(const DrawTask* tasks, const int32_t* tokens, const DrawnRows& to, int vocab, int count,
                    cudaStream_t stream);

// logprobs[i] = target_logits[i] - log_sums[i] where there is a token.
void finish_logprobs(const float* target_logits, const float* log_sums, const int64_t* targets, float* logprobs,
                     int count, cudaStream_t stream);

}  // namespace hexad::native::cuda
