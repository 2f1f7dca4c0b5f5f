// Products of small fp32 matrices in registers, on GCC's vector extensions. Everything is inlined into an entry point
// whose target attribute decides what instructions come out.
#pragma once
#include <cstdint>
#include <cstring>
#include <utility>

#include "modeling/op/cpu/vector_math.hpp"

namespace hexad::modeling::cpu {

template <int N>
struct Vector {
  typedef float F __attribute__((vector_size(N * 4)));
};
template <int N>
using VecF = typename Vector<N>::F;

template <int N>
HEXAD_INLINE VecF<N> load_vector(const float* p) {
  VecF<N> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <int N>
HEXAD_INLINE void store_vector(float* p, VecF<N> v) {
  std::memcpy(p, &v, sizeof v);
}

// A matrix whose element (r, k) is data[r * row + k * step].
struct Left {
  const float* data;
  int64_t row, step;
};

// sum[r] += sum over k < count of left(r, k) * right[k], over C vectors of columns.
template <int N, int R, int C>
HEXAD_INLINE void add_product(Left left, const float* right, int64_t right_row, int64_t count, VecF<N> (&sum)[R][C]) {
  for (int64_t k = 0; k < count; ++k) {
    VecF<N> v[C];
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) v[c] = load_vector<N>(right + k * right_row + c * N);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const float x = left.data[r * left.row + k * left.step];
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) sum[r][c] += x * v[c];
    }
  }
}

// out[r] = left * right, R rows of C vectors.
template <int N, int R, int C>
HEXAD_INLINE void product(Left left, const float* right, int64_t right_row, int64_t count, float* out,
                          int64_t out_row) {
  VecF<N> sum[R][C] = {};
  add_product<N, R, C>(left, right, right_row, count, sum);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) store_vector<N>(out + r * out_row + c * N, sum[r][c]);
  }
}

// out[r] = keep[r] * out[r] + left * right, R rows of C vectors; keep null: ones. A product is summed by itself before
// it is added: rounding errors grow with the length of a sum.
template <int N, int R, int C>
HEXAD_INLINE void accumulate_part(Left left, const float* right, int64_t right_row, int64_t count, float* out,
                                  int64_t out_row, const float* keep) {
  VecF<N> sum[R][C] = {};
  add_product<N, R, C>(left, right, right_row, count, sum);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const float kept = keep ? keep[r] : 1.0f;
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
      float* const at = out + r * out_row + c * N;
      store_vector<N>(at, load_vector<N>(at) * kept + sum[r][c]);
    }
  }
}

// The same over `columns` columns, a multiple of N: of right and of out, whose rows have `row` elements.
template <int N, int R>
HEXAD_INLINE void accumulate(Left left, const float* right, int64_t columns, int64_t count, float* out,
                             const float* keep = nullptr) {
  int64_t c = 0;
  for (; c + 2 * N <= columns; c += 2 * N)
    accumulate_part<N, R, 2>(left, right + c, columns, count, out + c, columns, keep);
  for (; c < columns; c += N) accumulate_part<N, R, 1>(left, right + c, columns, count, out + c, columns, keep);
}

template <int N, int... I>
HEXAD_INLINE void interleave(VecF<N> a, VecF<N> b, VecF<N>& low, VecF<N>& high, std::integer_sequence<int, I...>) {
  low = __builtin_shufflevector(a, b, (I / 2 + I % 2 * N)...);
  high = __builtin_shufflevector(a, b, (N / 2 + I / 2 + I % 2 * N)...);
}

// out[c * out_row + r] = in[r * in_row + c], N x N: interleaving the first half of the rows with the second one log2(N)
// times moves the bits of a row's number into that of the column.
template <int N>
HEXAD_INLINE void transpose(const float* in, int64_t in_row, float* out, int64_t out_row) {
  VecF<N> rows[N], next[N];
#pragma GCC unroll 16
  for (int r = 0; r < N; ++r) rows[r] = load_vector<N>(in + r * in_row);
#pragma GCC unroll 4
  for (int round = 1; round < N; round *= 2) {
#pragma GCC unroll 8
    for (int r = 0; r < N / 2; ++r)
      interleave<N>(rows[r], rows[r + N / 2], next[2 * r], next[2 * r + 1], std::make_integer_sequence<int, N>());
#pragma GCC unroll 16
    for (int r = 0; r < N; ++r) rows[r] = next[r];
  }
#pragma GCC unroll 16
  for (int r = 0; r < N; ++r) store_vector<N>(out + r * out_row, rows[r]);
}

}  // namespace hexad::modeling::cpu
