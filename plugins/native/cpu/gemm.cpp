#include "plugins/native/cpu/gemm.hpp"

#include <algorithm>
#include <vector>

#include "plugins/native/cpu/isa.hpp"
#include "plugins/native/cpu/parallel.hpp"

namespace hexad::native::cpu {
namespace {

// Sums of the lanes of four vectors, in a fixed order: halves are folded onto each other, then the four are
// interleaved.
HEXAD_INLINE VecF<4> sums(VecF<4> a, VecF<4> b, VecF<4> c, VecF<4> d) {
  const VecF<4> ab = __builtin_shufflevector(a, b, 0, 4, 1, 5) + __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const VecF<4> cd = __builtin_shufflevector(c, d, 0, 4, 1, 5) + __builtin_shufflevector(c, d, 2, 6, 3, 7);
  return __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}
HEXAD_INLINE VecF<4> fold(VecF<8> v) {
  return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
}
HEXAD_INLINE VecF<4> fold(VecF<16> v) {
  return fold(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
              __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
}
HEXAD_INLINE VecF<4> fold(VecF<4> v) { return v; }

constexpr int kColumns = 4;
constexpr int64_t kAhead = 32768;  // bytes

// `R` rows of x against `columns` <= 4 rows of the weight.
template <int N, int R, bool Fetch, typename T>
HEXAD_INLINE void tile(const float* x, int64_t k, const T* weight, const Product& product, int64_t row, int64_t column,
                       int64_t columns) {
  VecF<N> acc[R][kColumns] = {};
  const T* w[kColumns];
#pragma GCC unroll 4
  for (int j = 0; j < kColumns; ++j) w[j] = weight + (column + (j < columns ? j : 0)) * k;
  int64_t i = 0;
  for (; i + N <= k; i += N) {
    VecF<N> wv[kColumns];
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) {
      wv[j] = load<N>(w[j] + i);
      if constexpr (Fetch) __builtin_prefetch(reinterpret_cast<const char*>(w[j] + i) + kAhead, 0, 2);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const VecF<N> xv = load<N>(x + r * k + i);
#pragma GCC unroll 4
      for (int j = 0; j < kColumns; ++j) acc[r][j] += xv * wv[j];
    }
  }
  if (i < k) {
    VecF<N> wv[kColumns];
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) wv[j] = load_part<N>(w[j] + i, k - i);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const VecF<N> xv = load_part<N>(x + r * k + i, k - i);
#pragma GCC unroll 4
      for (int j = 0; j < kColumns; ++j) acc[r][j] += xv * wv[j];
    }
  }
  const VecF<4> bias = product.bias ? load_part<4>(product.bias + column, columns) : VecF<4>{};
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const VecF<4> total = sums(fold(acc[r][0]), fold(acc[r][1]), fold(acc[r][2]), fold(acc[r][3])) + bias;
    float* out = product.out + (row + r) * product.n + column;
    if (columns == kColumns) {
      store<4>(out, product.add ? load<4>(out) + total : total);
    } else {
      for (int64_t j = 0; j < columns; ++j) out[j] = product.add ? out[j] + total[j] : total[j];
    }
  }
}

// Columns [begin, end) of one product: a few rows of the weight stay in the first-level cache while the rows of x pass,
// which are rows first_row, ... of the result.
template <int N, int R, typename T>
HEXAD_INLINE void strip(const float* x, int64_t rows, int64_t k, const Product& product, int64_t first_row,
                        int64_t begin, int64_t end) {
  const T* weight = static_cast<const T*>(product.weight);
  int64_t row = 0;
  const auto pass = [&](auto count) __attribute__((always_inline)) {
    for (int64_t column = begin; column < end; column += kColumns) {
      const int64_t columns = std::min<int64_t>(kColumns, end - column);
      if (row == 0) {
        tile<N, decltype(count)::value, true, T>(x + row * k, k, weight, product, first_row + row, column, columns);
      } else {
        tile<N, decltype(count)::value, false, T>(x + row * k, k, weight, product, first_row + row, column, columns);
      }
    }
    row += decltype(count)::value;
  };
  while (row + R <= rows) pass(std::integral_constant<int, R>());
  if constexpr (R > 4) {
    while (row + 4 <= rows) pass(std::integral_constant<int, 4>());
  }
  while (row + 2 <= rows) pass(std::integral_constant<int, 2>());
  while (row < rows) pass(std::integral_constant<int, 1>());
}

template <typename T>
using Strip = void (*)(const float* x, int64_t rows, int64_t k, const Product& product, int64_t first_row,
                       int64_t begin, int64_t end);

// 24 of 32 registers hold sums with 512-bit vectors, 8 of 16 otherwise.
#if defined(HEXAD_TARGET_V4)
template <typename T>
HEXAD_TARGET_V4 void strip_v4(const float* x, int64_t rows, int64_t k, const Product& product, int64_t first_row,
                              int64_t begin, int64_t end) {
  strip<16, 6, T>(x, rows, k, product, first_row, begin, end);
}
template <typename T>
HEXAD_TARGET_V3 void strip_v3(const float* x, int64_t rows, int64_t k, const Product& product, int64_t first_row,
                              int64_t begin, int64_t end) {
  strip<8, 2, T>(x, rows, k, product, first_row, begin, end);
}
#endif
template <typename T>
void strip_base(const float* x, int64_t rows, int64_t k, const Product& product, int64_t first_row, int64_t begin,
                int64_t end) {
  strip<4, 2, T>(x, rows, k, product, first_row, begin, end);
}

template <typename T>
Strip<T> choose_strip() {
#if defined(HEXAD_TARGET_V4)
  if (isa() == Isa::v4) return strip_v4<T>;
  if (isa() == Isa::v3) return strip_v3<T>;
#endif
  return strip_base<T>;
}

}  // namespace

template <typename T>
void multiply(const float* x, int64_t rows, int64_t k, std::span<const Product> products) {
  static const Strip<T> run = choose_strip<T>();
  if (rows == 0) return;
  // About 32 KiB of weights a strip, and as many rows of x as stay in the second-level cache.
  const int64_t width = std::max<int64_t>(kColumns, (32768 / (k * int64_t(sizeof(T)))) / kColumns * kColumns);
  const int64_t block = std::max<int64_t>(48, (int64_t{1} << 20) / (k * int64_t(sizeof(float))) / 12 * 12);
  const int64_t blocks = (rows + block - 1) / block;
  std::vector<int64_t> first{0};  // strip numbers at which the products begin
  for (const Product& product : products) first.push_back(first.back() + (product.n + width - 1) / width);
  const int64_t strips = first.back();
  // A thread is worth waking for a few ten microseconds of work.
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 20) / (std::min(block, rows) * width * k));
  parallel_for(blocks * strips, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / strips * block, strip = i % strips;
      const size_t p = std::upper_bound(first.begin(), first.end(), strip) - first.begin() - 1;
      const int64_t column = (strip - first[p]) * width;
      run(x + row * k, std::min(block, rows - row), k, products[p], row, column,
          std::min(products[p].n, column + width));
    }
  });
}

template void multiply<float>(const float*, int64_t, int64_t, std::span<const Product>);
template void multiply<BFloat16>(const float*, int64_t, int64_t, std::span<const Product>);

}  // namespace hexad::native::cpu
