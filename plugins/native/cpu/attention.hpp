// Attention of a decoder on a CPU over a paged KV cache. What a query gets is a fixed sequence of operations on its own
// keys and values, in the order of their positions: it does not depend on the batch, on how the prompt was cut into
// chunks, or on which blocks hold the cache.
#pragma once
#include <cstdint>
#include <span>

#include "plugins/native/cpu/simd.hpp"

namespace hexad::native::cpu {

struct AttentionShape {
  int64_t heads, kv_heads, head_dim, block_size;
  int64_t window;  // keys a query sees, itself included; 0: all before it
};

// One layer's cache: keys [blocks, kv_heads, head_dim, block_size] (transposed, so that a vector holds one dimension of
// several keys), values [blocks, kv_heads, block_size, head_dim]. T: float, BFloat16 or Float8.
template <typename T>
struct LayerCache {
  T* keys;
  T* values;
};

// Rows [row, row + count) of the batch are the tokens at positions [start, start + count) of one sequence.
struct SequenceRows {
  int64_t row, start, count;
  const int32_t* blocks;
};

// Stores k and v [T, kv_heads, head_dim], fp32, of all rows of `sequences` into the cache.
template <typename T>
void write_cache(const AttentionShape& shape, std::span<const SequenceRows> sequences, const float* k, const float* v,
                 const LayerCache<T>& cache);

// q and out [T, heads, head_dim], fp32; the scale is 1/sqrt(head_dim). The rows' own keys and values are in the cache.
template <typename T>
void attend(const AttentionShape& shape, std::span<const SequenceRows> sequences, const float* q, float* out,
            const LayerCache<T>& cache);

}  // namespace hexad::native::cpu
