#include "plugins/native/cpu/gemm.hpp"

#include <algorithm>
#include <vector>

#include "modeling/op/cpu/isa.hpp"
#include "modeling/op/cpu/parallel.hpp"

namespace hexad::native::cpu {
namespace {

using modeling::cpu::isa;
using modeling::cpu::Isa;

constexpr int64_t kAhead = 32;  // rows of a panel that are asked for before they are needed

// Sums are formed over runs of this length in the order of k, and then of the runs: rounding errors grow with the
// length of a run.
constexpr int64_t kRun = 256;

// Writes N columns from `column` on of one row of the result.
template <int N>
HEXAD_INLINE void put(const Product& product, int64_t row, int64_t column, VecF<N> value) {
  const int64_t there = product.n - column;
  if (there <= 0) return;
  float* out = product.out + row * product.n + column;
  const bool whole = there >= N;
  if (product.bias) value += whole ? load<N>(product.bias + column) : load_part<N>(product.bias + column, there);
  if (product.add) value += whole ? load<N>(out) : load_part<N>(out, there);
  if (whole) return store<N>(out, value);
  for (int64_t j = 0; j < there; ++j) out[j] = value[j];
}

// R rows of x against 2 N columns of a panel.
template <int N, int R, bool Fetch, typename T>
HEXAD_INLINE void tile(const float* x, int64_t k, const T* panel, const Product& product, int64_t row, int64_t column) {
  VecF<N> left[R] = {}, right[R] = {};  // of the runs before
  for (int64_t begin = 0; begin < k; begin += kRun) {
    const int64_t end = std::min(k, begin + kRun);
    VecF<N> a[R] = {}, b[R] = {};
    for (int64_t i = begin; i < end; ++i) {
      const T* w = panel + i * kPanel;
      if constexpr (Fetch) __builtin_prefetch(w + kAhead * kPanel, 0, 2);
      if constexpr (Fetch && N * sizeof(T) > 32) __builtin_prefetch(w + kAhead * kPanel + N, 0, 2);
      const VecF<N> u = load<N>(w), v = load<N>(w + N);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        a[r] += x[r * k + i] * u;
        b[r] += x[r * k + i] * v;
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) left[r] += a[r], right[r] += b[r];
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    put<N>(product, row + r, column, left[r]);
    put<N>(product, row + r, column + N, right[r]);
  }
}

// One panel against `rows` rows of x, which are rows first_row, ... of the result.
template <int N, int R, typename T>
HEXAD_INLINE void panel_times(const float* x, int64_t rows, int64_t k, const Product& product, int64_t first_row,
                              int64_t column) {
  const T* panel = static_cast<const T*>(product.weight) + column * k;
  int64_t row = 0;
  const auto pass = [&](auto count) __attribute__((always_inline)) {
    for (int64_t part = 0; part < kPanel && column + part < product.n; part += 2 * N) {
      if (row == 0) {
        tile<N, decltype(count)::value, true, T>(x + row * k, k, panel + part, product, first_row + row, column + part);
      } else {
        tile<N, decltype(count)::value, false, T>(x + row * k, k, panel + part, product, first_row + row,
                                                  column + part);
      }
    }
    row += decltype(count)::value;
  };
  while (row + R <= rows) pass(std::integral_constant<int, R>());
  if constexpr (R > 8) {
    while (row + 8 <= rows) pass(std::integral_constant<int, 8>());
  }
  while (row + 4 <= rows) pass(std::integral_constant<int, 4>());
  while (row + 2 <= rows) pass(std::integral_constant<int, 2>());
  while (row < rows) pass(std::integral_constant<int, 1>());
}

template <typename T>
using PanelTimes = void (*)(const float* x, int64_t rows, int64_t k, const Product& product, int64_t first_row,
                            int64_t column);

// 24 of 32 registers hold sums with 512-bit vectors, 12 of 16 otherwise.
#if defined(HEXAD_TARGET_V4)
template <typename T>
HEXAD_TARGET_V4 void panel_v4(const float* x, int64_t rows, int64_t k, const Product& product, int64_t first_row,
                              int64_t column) {
  panel_times<16, 12, T>(x, rows, k, product, first_row, column);
}
template <typename T>
HEXAD_TARGET_V3 void panel_v3(const float* x, int64_t rows, int64_t k, const Product& product, int64_t first_row,
                              int64_t column) {
  panel_times<8, 6, T>(x, rows, k, product, first_row, column);
}
#endif
template <typename T>
void panel_base(const float* x, int64_t rows, int64_t k, const Product& product, int64_t first_row, int64_t column) {
  panel_times<4, 6, T>(x, rows, k, product, first_row, column);
}

template <typename T>
PanelTimes<T> choose_kernel() {
#if defined(HEXAD_TARGET_V4)
  if (isa() == Isa::v4) return panel_v4<T>;
  if (isa() == Isa::v3) return panel_v3<T>;
#endif
  return panel_base<T>;
}

}  // namespace

template <typename T>
void pack(const T* weight, int64_t n, int64_t k, T* packed) {
  modeling::cpu::parallel_for((n + kPanel - 1) / kPanel, 4, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * kPanel, count = std::min(kPanel, n - first);
      T* target = packed + first * k;
      // A few columns at a time, so that the lines of both sides stay in a cache.
      for (int64_t i = 0; i < k; i += 16) {
        const int64_t last = std::min(k, i + 16);
        for (int64_t j = 0; j < kPanel; ++j) {
          for (int64_t c = i; c < last; ++c) target[c * kPanel + j] = j < count ? weight[(first + j) * k + c] : T{};
        }
      }
    }
  });
}

template <typename T>
void unpack_row(const T* packed, int64_t n, int64_t k, float* row) {
  const T* source = packed + n / kPanel * kPanel * k + n % kPanel;
  for (int64_t i = 0; i < k; ++i) row[i] = to_float(source[i * kPanel]);
}

template <typename T>
void multiply(const float* x, int64_t rows, int64_t k, std::span<const Product> products) {
  static const PanelTimes<T> run = choose_kernel<T>();
  if (rows == 0) return;
  // As many rows of x as stay in the second-level cache beside a panel.
  const int64_t block = std::max<int64_t>(48, (int64_t{1} << 20) / (k * int64_t(sizeof(float))) / 12 * 12);
  const int64_t blocks = (rows + block - 1) / block;
  std::vector<int64_t> first{0};  // panel numbers at which the products begin
  for (const Product& product : products) first.push_back(first.back() + (product.n + kPanel - 1) / kPanel);
  const int64_t panels = first.back();
  // A thread is worth waking for a few ten microseconds of work.
  const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 20) / (std::min(block, rows) * kPanel * k));
  modeling::cpu::parallel_each(blocks * panels, (blocks * panels + grain - 1) / grain, [&](int64_t i) {
    const int64_t row = i / panels * block, panel = i % panels;
    const size_t p = std::upper_bound(first.begin(), first.end(), panel) - first.begin() - 1;
    run(x + row * k, std::min(block, rows - row), k, products[p], row, (panel - first[p]) * kPanel);
  });
}

template void pack<float>(const float*, int64_t, int64_t, float*);
template void pack<BFloat16>(const BFloat16*, int64_t, int64_t, BFloat16*);
template void unpack_row<float>(const float*, int64_t, int64_t, float*);
template void unpack_row<BFloat16>(const BFloat16*, int64_t, int64_t, float*);
template void multiply<float>(const float*, int64_t, int64_t, std::span<const Product>);
template void multiply<BFloat16>(const float*, int64_t, int64_t, std::span<const Product>);

}  // namespace hexad::native::cpu
