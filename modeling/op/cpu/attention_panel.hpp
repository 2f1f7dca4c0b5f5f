// What both passes of attention share: a block of queries in panels of rows, and tiles of keys.
//
// A row is one query of one head: the heads that share a KV head lie beside each other. Scores are held transposed,
// [key, row], so that a row's largest score and its sum are found without going across a vector, and so that queries,
// which many tiles of keys meet, are what is transposed, and not keys.
#pragma once
#include <algorithm>
#include <cstdint>

#include "modeling/op/cpu/attention_kernel.hpp"
#include "modeling/op/cpu/isa.hpp"
#include "modeling/op/cpu/vector_tile.hpp"

namespace hexad::modeling::cpu {

constexpr int64_t kKeys = 64;        // of a tile
constexpr int64_t kBlockRows = 384;  // of a block: what is packed of them stays in a second-level cache
constexpr int64_t kRowsAlign = 32;   // blocks are filled up to it: a multiple of every instruction set's panel
constexpr int64_t kWidthAlign = 16;

constexpr int64_t aligned(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Hands out parts of a scratch buffer, or only counts where there is none.
struct Arena {
  float* base;
  int64_t used = 0;

  float* take(int64_t floats) {
    float* const part = base ? base + used : nullptr;
    used += aligned(floats, 16);
    return part;
  }
};

// Room for the rows of a block.
inline int64_t block_rows(const AttentionShape& shape) {
  return aligned(std::min(attention_queries(shape.group), shape.tokens) * shape.group, kRowsAlign);
}

// Rows of consecutive queries; beyond the last one, fillers that see what it sees and weigh nothing.
struct QueryBlock {
  const AttentionShape& shape;
  int64_t first, count;  // queries

  int64_t rows() const { return count * shape.group; }
  int64_t position(int64_t row) const { return first + std::min(row / shape.group, count - 1); }
  int64_t end() const { return first + count; }
  int64_t first_tile() const {
    return shape.window > 0 ? std::max<int64_t>(0, first - shape.window + 1) / kKeys * kKeys : 0;
  }
};

// Keys of a tile that rows [row, row + count) of a block see: [begin, end), and whether all rows see all of them.
struct Seen {
  int64_t begin, end;
  bool whole;
};
inline Seen seen_keys(const QueryBlock& block, int64_t row, int64_t count, int64_t tile, int64_t align) {
  const int64_t low = block.position(row), high = block.position(row + count - 1), window = block.shape.window;
  const int64_t begin = window > 0 ? std::max<int64_t>(0, low - window + 1 - tile) : 0;
  const Seen seen = {begin / align * align, std::min(kKeys, high + 1 - tile), false};
  const int64_t last = tile + aligned(std::max<int64_t>(seen.end, 0), align) - 1;
  const bool whole = last <= low && (window == 0 || tile + seen.begin > high - window);
  return {seen.begin, seen.end, whole};
}

// Whether row r sees key j of a tile is first[r] <= j <= last[r].
template <int W>
struct Mask {
  int32_t first[W], last[W];

  HEXAD_INLINE Mask(const QueryBlock& block, int64_t row, int64_t tile) {
    for (int r = 0; r < W; ++r) {
      const int64_t at = block.position(row + r) - tile;
      last[r] = int32_t(std::min(at, kKeys));
      first[r] = block.shape.window > 0 ? int32_t(std::max<int64_t>(at - block.shape.window + 1, 0)) : 0;
    }
  }
};

// out [padded] = scale * in [width], zeros behind.
template <typename T>
HEXAD_INLINE void copy_row(const T* in, int64_t width, int64_t padded, float scale, float* out) {
#pragma omp simd
  for (int64_t d = 0; d < width; ++d) out[d] = load(in + d) * scale;
  for (int64_t d = width; d < padded; ++d) out[d] = 0.0f;
}

// A tile of keys or values, [kKeys, padded]; rows beyond the document are zeros.
template <typename T>
HEXAD_INLINE void copy_tile(const HeadRows<const T>& in, int64_t tile, int64_t tokens, int64_t width, int64_t padded,
                            float* out) {
  const int64_t there = std::min(kKeys, tokens - tile);
  for (int64_t j = 0; j < there; ++j) copy_row(in.row(tile + j), width, padded, 1.0f, out + j * padded);
  for (int64_t i = there * padded; i < kKeys * padded; ++i) out[i] = 0.0f;
}

// A panel of W rows of a block, [W, padded], and the same transposed, [padded, W].
template <int N, typename T>
HEXAD_INLINE void copy_panel(const HeadRows<const T>& in, const QueryBlock& block, int64_t row, int64_t width,
                             int64_t padded, float scale, float* rows, float* transposed) {
  constexpr int W = 2 * N;
  for (int r = 0; r < W; ++r) {
    const int64_t at = row + r, group = block.shape.group;
    if (at < block.rows()) {
      copy_row(in.row(block.first + at / group, at % group), width, padded, scale, rows + r * padded);
    } else {
      for (int64_t d = 0; d < padded; ++d) rows[r * padded + d] = 0.0f;
    }
  }
  for (int half = 0; half < W; half += N) {
    for (int64_t d = 0; d < padded; d += N)
      transpose<N>(rows + half * padded + d, padded, transposed + d * W + half, W);
  }
}

// products[j] = keys[j] * transposed, for keys [begin, end) of a tile: a dot product each for the W rows of a panel.
template <int N, int R>
HEXAD_INLINE void dot_products(const float* keys, int64_t padded, int64_t width, const float* transposed, int64_t begin,
                               int64_t end, float* products) {
  constexpr int W = 2 * N;
  for (int64_t j = begin; j < end; j += R)
    product<N, R, 2>({keys + j * padded, padded, 1}, transposed, W, width, products + j * W, W);
}

// out[r] = keep[r] * out[r] + sum over the keys that it sees of weights[key, r] * values[key], for the W rows of a
// panel.
template <int N, int R>
HEXAD_INLINE void add_weighted(const QueryBlock& block, int64_t row, int64_t tile, const float* weights,
                               const float* values, int64_t padded, int64_t begin, float* out, const float* keep) {
  constexpr int W = 2 * N;
  for (int r = 0; r < W; r += R) {
    const int64_t end = std::min(kKeys, block.position(row + r + R - 1) + 1 - tile);
    if (end <= begin) continue;
    accumulate<N, R>({weights + begin * W + r, 1, W}, values + begin * padded, padded, end - begin, out + r * padded,
                     keep ? keep + r : nullptr);
  }
}

// A pass has run<N, R>(task, scratch), over panels of 2 N rows and R keys at a time, and a Scratch of its own: compiled
// for each instruction set, run on the machine's.
#if defined(HEXAD_TARGET_V4)
template <typename Pass, typename Task>
HEXAD_TARGET_V4 void run_v4(const Task& task, float* scratch) {
  Pass::template run<16, 8>(task, scratch);
}
template <typename Pass, typename Task>
HEXAD_TARGET_V3 void run_v3(const Task& task, float* scratch) {
  Pass::template run<8, 4>(task, scratch);
}
#endif

template <typename Pass, typename Task>
void run_pass(const Task& task, float* scratch) {
#if defined(HEXAD_TARGET_V4)
  if (isa() == Isa::v4) return run_v4<Pass>(task, scratch);
  if (isa() == Isa::v3) return run_v3<Pass>(task, scratch);
#endif
  Pass::template run<4, 4>(task, scratch);
}

template <typename Scratch>
int64_t scratch_floats(const AttentionShape& shape) {
  Arena arena{nullptr};
  Scratch(shape, arena);
  return arena.used;
}

}  // namespace hexad::modeling::cpu
