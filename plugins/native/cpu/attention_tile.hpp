// The inner kernel of attend(): a few queries of one KV head against their keys and values.
#pragma once
#include <cmath>
#include <limits>

#include "plugins/native/cpu/attention.hpp"

namespace hexad::native::cpu {

constexpr int kMaxQueries = 6;

// Queries that share a KV head and a block table.
struct QueryTile {
  const float* q[kMaxQueries];
  float* out[kMaxQueries];
  int64_t position[kMaxQueries];  // not decreasing
  const int32_t* blocks;
  int64_t kv_head;
};

// Running softmax of R queries: largest score, sum of exponentials by lane, and the weighted sum of values.
template <int W, int R>
struct Softmax {
  float largest[R];
  VecF<W> sums[R];
  float* values;  // [R, stride]
  int64_t stride;
};

// Scores of W keys: R dot products each. `keys` is [head_dim, block_size] from the first key on; q [R, stride], scaled.
// `next`: keys that are asked for meanwhile.
template <int W, int R, typename T>
HEXAD_INLINE void scores(const AttentionShape& shape, const float* q, int64_t stride, const T* keys, const T* next,
                         VecF<W>* s) {
  VecF<W> even[R] = {}, odd[R] = {};
  for (int64_t d = 0; d < shape.head_dim; d += 2) {
    __builtin_prefetch(next + d * shape.block_size);
    __builtin_prefetch(next + (d + 1) * shape.block_size);
    const VecF<W> a = load<W>(keys + d * shape.block_size), b = load<W>(keys + (d + 1) * shape.block_size);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      even[r] += q[r * stride + d] * a;
      odd[r] += q[r * stride + d + 1] * b;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) s[r] = even[r] + odd[r];
}

// values[r] = values[r] * shrink[r] + sum over `count` keys of p[r][j] * v[j], one vector of dimensions at a time.
// `next`: values that are asked for meanwhile.
template <int N, int W, int R, typename T>
HEXAD_INLINE void add_values(const AttentionShape& shape, const float (*p)[W], const float* shrink, const T* v,
                             const T* next, int64_t count, float* values, int64_t stride) {
  for (int64_t d = 0; d < shape.head_dim; d += N) {
    const int64_t part = shape.head_dim - d;
    VecF<N> sum[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum[r] = load<N>(values + r * stride + d) * shrink[r];
    for (int64_t j = 0; j < count; ++j) {
      const T* row = v + j * shape.head_dim + d;
      __builtin_prefetch(next + j * shape.head_dim + d);
      const VecF<N> value = part >= N ? load<N>(row) : load_part<N>(row, part);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) sum[r] += p[r][j] * value;
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) store<N>(values + r * stride + d, sum[r]);
  }
}

// Where the keys and values of a position begin in a layer's cache.
struct Place {
  int64_t keys, values;
};

HEXAD_INLINE Place place_of(const AttentionShape& shape, const QueryTile& tile, int64_t position) {
  const int64_t block = tile.blocks[position / shape.block_size], offset = position % shape.block_size;
  const int64_t head = (block * shape.kv_heads + tile.kv_head) * shape.head_dim * shape.block_size;
  return {head + offset, head + offset * shape.head_dim};
}

// Keys [first, first + W) of the tile's sequence into the running softmax. Keys that a query must not see count
// nothing. Those that follow are asked for: they lie in another block, whose place no processor guesses.
template <int N, int W, int R, typename T>
HEXAD_INLINE void add_keys(const AttentionShape& shape, const QueryTile& tile, const float* q, int64_t first,
                           const LayerCache<T>& cache, Softmax<W, R>& state) {
  const Place here = place_of(shape, tile, first);
  const Place next = first + W <= tile.position[R - 1] ? place_of(shape, tile, first + W) : here;
  VecF<W> s[R];
  scores<W, R, T>(shape, q, state.stride, cache.keys + here.keys, cache.keys + next.keys, s);
  alignas(64) float p[R][W];
  float shrink[R];
  VecI<W> lane;
  for (int j = 0; j < W; ++j) lane[j] = j;
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const int64_t last = tile.position[r], begin = shape.window > 0 ? last - shape.window + 1 : 0;
    shrink[r] = 1.0f;
    if (last < first || begin >= first + W) {
      store<W>(p[r], VecF<W>{});
      continue;
    }
    const int32_t low = int32_t(begin > first ? begin - first : 0), high = int32_t(last - first < W ? last - first : W);
    const VecF<W> hidden = VecF<W>{} - std::numeric_limits<float>::infinity();
    const VecF<W> seen = (lane >= low) & (lane <= high) ? s[r] : hidden;
    const float largest = std::max(state.largest[r], max<W>(seen));
    if (largest != state.largest[r]) {
      shrink[r] = exp_negative<4>(VecF<4>{} + (state.largest[r] - largest))[0];
      state.largest[r] = largest;
    }
    const VecF<W> weight = exp_negative<W>(seen - largest);
    state.sums[r] = state.sums[r] * shrink[r] + weight;
    store<W>(p[r], weight);
  }
  const int64_t count = std::min<int64_t>(W, tile.position[R - 1] + 1 - first);
  add_values<N, W, R, T>(shape, p, shrink, cache.values + here.values, cache.values + next.values, count, state.values,
                         state.stride);
}

// `scratch` has room for 2 * kMaxQueries rows of head_dim rounded up to 16. W divides block_size.
template <int N, int W, int R, typename T>
HEXAD_INLINE void attend_tile(const AttentionShape& shape, const QueryTile& tile, const LayerCache<T>& cache,
                              float* scratch) {
  const int64_t stride = (shape.head_dim + 15) / 16 * 16;
  float* q = scratch + kMaxQueries * stride;
  const float scale = 1.0f / std::sqrt(float(shape.head_dim));
  Softmax<W, R> state{.largest = {}, .sums = {}, .values = scratch, .stride = stride};
  for (int r = 0; r < R; ++r) {
    state.largest[r] = -std::numeric_limits<float>::infinity();
    for (int64_t d = 0; d < shape.head_dim; ++d) q[r * stride + d] = tile.q[r][d] * scale;
    for (int64_t d = 0; d < stride; ++d) state.values[r * stride + d] = 0.0f;
  }
  const int64_t begin = shape.window > 0 ? std::max<int64_t>(0, tile.position[0] - shape.window + 1) : 0;
  for (int64_t first = begin / W * W; first <= tile.position[R - 1]; first += W) {
    add_keys<N, W, R, T>(shape, tile, q, first, cache, state);
  }
  for (int r = 0; r < R; ++r) {
    const float inverse = 1.0f / sum<W>(state.sums[r]);
    for (int64_t d = 0; d < shape.head_dim; ++d) tile.out[r][d] = state.values[r * stride + d] * inverse;
  }
}

template <int N, int W, typename T>
HEXAD_INLINE void attend_queries(const AttentionShape& shape, const QueryTile& tile, int queries,
                                 const LayerCache<T>& cache, float* scratch) {
  if constexpr (W == 1) {  // blocks of an odd size: not worth the compile time of six
    for (int r = 0; r < queries; ++r) {
      const QueryTile one{{tile.q[r]}, {tile.out[r]}, {tile.position[r]}, tile.blocks, tile.kv_head};
      attend_tile<N, W, 1, T>(shape, one, cache, scratch);
    }
    return;
  }
  switch (queries) {
    case 1: return attend_tile<N, W, 1, T>(shape, tile, cache, scratch);
    case 2: return attend_tile<N, W, 2, T>(shape, tile, cache, scratch);
    case 3: return attend_tile<N, W, 3, T>(shape, tile, cache, scratch);
    case 4: return attend_tile<N, W, 4, T>(shape, tile, cache, scratch);
    case 5: return attend_tile<N, W, 5, T>(shape, tile, cache, scratch);
    default: return attend_tile<N, W, 6, T>(shape, tile, cache, scratch);
  }
}

}  // namespace hexad::native::cpu
