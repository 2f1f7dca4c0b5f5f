#include <cmath>
#include <limits>

#include "modeling/op/cpu/attention_panel.hpp"

namespace hexad::modeling::cpu {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

struct Scratch {
  int64_t width, value_width;  // filled up
  float *queries, *sums;       // of all rows: transposed in panels; of weighted values
  float *largest, *totals;     // of each row
  float *keys, *values;        // a tile
  float *rows, *scores;        // a panel

  Scratch(const AttentionShape& shape, Arena& arena)
      : width(aligned(shape.width, kWidthAlign)), value_width(aligned(shape.value_width, kWidthAlign)) {
    const int64_t count = block_rows(shape);
    queries = arena.take(count * width), sums = arena.take(count * value_width);
    largest = arena.take(count), totals = arena.take(count);
    keys = arena.take(kKeys * width), values = arena.take(kKeys * value_width);
    rows = arena.take(kRowsAlign * width), scores = arena.take(kKeys * kRowsAlign);
  }
};

// Replaces scores of keys [begin, end) by their exponentials over the largest one so far; keep: what is left of the
// sums before.
template <int W, bool Masked>
HEXAD_INLINE void running_softmax(const Mask<W>& mask, int64_t begin, int64_t end, float* scores, float* largest,
                                  float* totals, float* keep) {
  alignas(64) float top[W], base[W], total[W];
  for (int r = 0; r < W; ++r) top[r] = largest[r];
  for (int64_t j = begin; j < end; ++j) {
    float* const s = scores + j * W;
#pragma omp simd
    for (int r = 0; r < W; ++r) {
      if constexpr (Masked) s[r] = (int32_t(j) >= mask.first[r]) & (int32_t(j) <= mask.last[r]) ? s[r] : kNothing;
      top[r] = s[r] > top[r] ? s[r] : top[r];
    }
  }
#pragma omp simd
  for (int r = 0; r < W; ++r) {
    base[r] = top[r] == kNothing ? 0.0f : top[r];  // a row that has seen no key yet
    keep[r] = exp_approx(largest[r] - base[r]);
    total[r] = 0.0f;
  }
  for (int64_t j = begin; j < end; ++j) {
    float* const s = scores + j * W;
#pragma omp simd
    for (int r = 0; r < W; ++r) {
      s[r] = exp_approx(s[r] - base[r]);
      total[r] += s[r];
    }
  }
  for (int r = 0; r < W; ++r) largest[r] = top[r], totals[r] = totals[r] * keep[r] + total[r];
}

template <int N, int R>
HEXAD_INLINE void attend_panel(const QueryBlock& block, int64_t row, int64_t tile, const Scratch& s) {
  constexpr int W = 2 * N;
  const Seen seen = seen_keys(block, row, W, tile, R);
  if (seen.end <= seen.begin) return;
  const int64_t end = aligned(seen.end, R);
  dot_products<N, R>(s.keys, s.width, block.shape.width, s.queries + row * s.width, seen.begin, end, s.scores);
  alignas(64) float keep[W];
  const Mask<W> mask(block, row, tile);
  if (seen.whole) {
    running_softmax<W, false>(mask, seen.begin, end, s.scores, s.largest + row, s.totals + row, keep);
  } else {
    running_softmax<W, true>(mask, seen.begin, end, s.scores, s.largest + row, s.totals + row, keep);
  }
  add_weighted<N, R>(block, row, tile, s.scores, s.values, s.value_width, seen.begin, s.sums + row * s.value_width,
                     keep);
}

template <int N, int R, typename T>
HEXAD_INLINE void forward(const AttentionForward<T>& task, float* memory) {
  constexpr int W = 2 * N;
  const AttentionShape& shape = task.shape;
  const QueryBlock block{shape, task.first, task.count};
  Arena arena{memory};
  const Scratch s(shape, arena);
  const float scale = 1.0f / std::sqrt(float(shape.width));
  const int64_t rows = aligned(block.rows(), W);
  for (int64_t row = 0; row < rows; row += W)
    copy_panel<N>(task.in.q, block, row, shape.width, s.width, scale, s.rows, s.queries + row * s.width);
  for (int64_t i = 0; i < rows; ++i) s.largest[i] = kNothing, s.totals[i] = 0.0f;
  for (int64_t i = 0; i < rows * s.value_width; ++i) s.sums[i] = 0.0f;
  for (int64_t tile = block.first_tile(); tile < block.end(); tile += kKeys) {
    copy_tile(task.in.k, tile, shape.tokens, shape.width, s.width, s.keys);
    copy_tile(task.in.v, tile, shape.tokens, shape.value_width, s.value_width, s.values);
    for (int64_t row = 0; row < rows; row += W) attend_panel<N, R>(block, row, tile, s);
  }
  for (int64_t row = 0; row < block.rows(); ++row) {
    const int64_t query = block.position(row), head = row % shape.group;
    const float inverse = 1.0f / s.totals[row];
    const float* sum = s.sums + row * s.value_width;
    T* const out = task.out.row(query, head);
#pragma omp simd
    for (int64_t d = 0; d < shape.value_width; ++d) store(out + d, sum[d] * inverse);
    *task.log_sum.row(query, head) = s.largest[row] + std::log(s.totals[row]);
  }
}

struct ForwardPass {
  template <int N, int R, typename T>
  HEXAD_INLINE static void run(const AttentionForward<T>& task, float* memory) {
    cpu::forward<N, R>(task, memory);
  }
};

}  // namespace

int64_t attention_queries(int64_t group) { return std::max<int64_t>(1, kBlockRows / group); }

int64_t attention_forward_scratch(const AttentionShape& shape) { return scratch_floats<Scratch>(shape); }

void attention_forward(const AttentionForward<float>& task, float* scratch) { run_pass<ForwardPass>(task, scratch); }
void attention_forward(const AttentionForward<BFloat16>& task, float* scratch) { run_pass<ForwardPass>(task, scratch); }

}  // namespace hexad::modeling::cpu
