#include <cmath>

#include "modeling/op/cpu/attention_panel.hpp"

namespace hexad::modeling::cpu {
namespace {

struct Scratch {
  int64_t width, value_width;                                       // filled up
  float *queries, *queries_across, *grads, *grads_across, *grad_q;  // of all rows of a block
  float *log_sums, *shifts;                                         // of each row
  float *keys, *values;                                             // a tile
  float *weights, *slopes;                                          // a panel: probabilities, gradients of scores
  float *grad_k, *grad_v;                                           // of the document

  Scratch(const AttentionShape& shape, Arena& arena)
      : width(aligned(shape.width, kWidthAlign)), value_width(aligned(shape.value_width, kWidthAlign)) {
    const int64_t count = block_rows(shape), tokens = aligned(shape.tokens, kKeys);
    queries = arena.take(count * width), queries_across = arena.take(count * width);
    grads = arena.take(count * value_width), grads_across = arena.take(count * value_width);
    grad_q = arena.take(count * width);
    log_sums = arena.take(count), shifts = arena.take(count);
    keys = arena.take(kKeys * width), values = arena.take(kKeys * value_width);
    weights = arena.take(kKeys * kRowsAlign), slopes = arena.take(kKeys * kRowsAlign);
    grad_k = arena.take(tokens * width), grad_v = arena.take(tokens * value_width);
  }
};

HEXAD_INLINE void clear(float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = 0.0f;
}

// Scores become probabilities p, and their products g with the gradient of the output p * (g - shift).
template <int W, bool Masked>
HEXAD_INLINE void softmax_gradient(const Mask<W>& mask, int64_t begin, int64_t end, const float* log_sums,
                                   const float* shifts, float* weights, float* slopes) {
  for (int64_t j = begin; j < end; ++j) {
    float *const w = weights + j * W, *const g = slopes + j * W;
#pragma omp simd
    for (int r = 0; r < W; ++r) {
      const float p = exp_approx(w[r] - log_sums[r]), slope = p * (g[r] - shifts[r]);
      const bool seen = !Masked || ((int32_t(j) >= mask.first[r]) & (int32_t(j) <= mask.last[r]));
      w[r] = seen ? p : 0.0f;
      g[r] = seen ? slope : 0.0f;
    }
  }
}

template <int N, int R>
HEXAD_INLINE void panel_gradients(const QueryBlock& block, int64_t row, int64_t tile, const Scratch& s) {
  constexpr int W = 2 * N;
  const Seen seen = seen_keys(block, row, W, tile, R);
  if (seen.end <= seen.begin) return;
  const AttentionShape& shape = block.shape;
  const int64_t end = aligned(seen.end, R);
  dot_products<N, R>(s.keys, s.width, shape.width, s.queries_across + row * s.width, seen.begin, end, s.weights);
  dot_products<N, R>(s.values, s.value_width, shape.value_width, s.grads_across + row * s.value_width, seen.begin, end,
                     s.slopes);
  const Mask<W> mask(block, row, tile);
  if (seen.whole) {
    softmax_gradient<W, false>(mask, seen.begin, end, s.log_sums + row, s.shifts + row, s.weights, s.slopes);
  } else {
    softmax_gradient<W, true>(mask, seen.begin, end, s.log_sums + row, s.shifts + row, s.weights, s.slopes);
  }
  for (int64_t j = seen.begin; j < end; j += R) {
    // Rows before this one are too early in the document to see these keys.
    const int64_t skip = std::clamp<int64_t>((tile + j - block.first) * shape.group - row, 0, W);
    accumulate<N, R>({s.weights + j * W + skip, W, 1}, s.grads + (row + skip) * s.value_width, s.value_width, W - skip,
                     s.grad_v + (tile + j) * s.value_width);
    accumulate<N, R>({s.slopes + j * W + skip, W, 1}, s.queries + (row + skip) * s.width, s.width, W - skip,
                     s.grad_k + (tile + j) * s.width);
  }
  add_weighted<N, R>(block, row, tile, s.slopes, s.keys, s.width, seen.begin, s.grad_q + row * s.width, nullptr);
}

// The rows of a block; shift: the product of a row's output and its gradient.
template <int N, typename T>
HEXAD_INLINE void copy_block(const AttentionBackward<T>& task, const QueryBlock& block, float scale, const Scratch& s) {
  constexpr int W = 2 * N;
  const AttentionShape& shape = task.shape;
  const int64_t rows = aligned(block.rows(), W);
  for (int64_t row = 0; row < rows; row += W) {
    const int64_t at = row * s.width, value_at = row * s.value_width;
    copy_panel<N>(task.in.q, block, row, shape.width, s.width, scale, s.queries + at, s.queries_across + at);
    copy_panel<N>(task.grad_out, block, row, shape.value_width, s.value_width, 1.0f, s.grads + value_at,
                  s.grads_across + value_at);
  }
  clear(s.grad_q, rows * s.width), clear(s.log_sums, rows), clear(s.shifts, rows);
  for (int64_t row = 0; row < block.rows(); ++row) {
    const int64_t query = block.position(row), head = row % shape.group;
    const T* const out = task.out.row(query, head);
    const float* const grad = s.grads + row * s.value_width;
    float shift = 0;
#pragma omp simd reduction(+ : shift)
    for (int64_t d = 0; d < shape.value_width; ++d) shift += load(out + d) * grad[d];
    s.shifts[row] = shift;
    s.log_sums[row] = *task.log_sum.row(query, head);
  }
}

template <typename T>
HEXAD_INLINE void store_row(const float* in, int64_t width, float scale, T* out) {
#pragma omp simd
  for (int64_t d = 0; d < width; ++d) store(out + d, in[d] * scale);
}

template <int N, int R, typename T>
HEXAD_INLINE void backward(const AttentionBackward<T>& task, float* memory) {
  const AttentionShape& shape = task.shape;
  Arena arena{memory};
  const Scratch s(shape, arena);
  const float scale = 1.0f / std::sqrt(float(shape.width));
  const int64_t tokens = aligned(shape.tokens, kKeys), step = attention_queries(shape.group);
  clear(s.grad_k, tokens * s.width), clear(s.grad_v, tokens * s.value_width);
  for (int64_t first = 0; first < shape.tokens; first += step) {
    const QueryBlock block{shape, first, std::min(step, shape.tokens - first)};
    copy_block<N>(task, block, scale, s);
    for (int64_t tile = block.first_tile(); tile < block.end(); tile += kKeys) {
      copy_tile(task.in.k, tile, shape.tokens, shape.width, s.width, s.keys);
      copy_tile(task.in.v, tile, shape.tokens, shape.value_width, s.value_width, s.values);
      for (int64_t row = 0; row < block.rows(); row += 2 * N) panel_gradients<N, R>(block, row, tile, s);
    }
    for (int64_t row = 0; row < block.rows(); ++row)
      store_row(s.grad_q + row * s.width, shape.width, scale, task.grad_q.row(block.position(row), row % shape.group));
  }
  for (int64_t t = 0; t < shape.tokens; ++t) {
    store_row(s.grad_k + t * s.width, shape.width, 1.0f, task.grad_k.row(t));
    store_row(s.grad_v + t * s.value_width, shape.value_width, 1.0f, task.grad_v.row(t));
  }
}

struct BackwardPass {
  template <int N, int R, typename T>
  HEXAD_INLINE static void run(const AttentionBackward<T>& task, float* memory) {
    cpu::backward<N, R>(task, memory);
  }
};

}  // namespace

int64_t attention_backward_scratch(const AttentionShape& shape) { return scratch_floats<Scratch>(shape); }

void attention_backward(const AttentionBackward<float>& task, float* scratch) { run_pass<BackwardPass>(task, scratch); }
void attention_backward(const AttentionBackward<BFloat16>& task, float* scratch) {
  run_pass<BackwardPass>(task, scratch);
}

}  // namespace hexad::modeling::cpu
