#include "plugins/native/sample/row_kernel.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "modeling/op/cpu/isa.hpp"
#include "plugins/native/cpu/simd.hpp"

namespace hexad::native {
namespace {

using modeling::cpu::isa;
using modeling::cpu::Isa;

using namespace cpu;

struct Kernels {
  float (*largest)(const float*, int64_t);
  void (*exp_sums)(const float*, int64_t, float, float, float*);
  void (*exp_terms)(const float*, int64_t, float, float, float*);
};

template <int N>
HEXAD_INLINE float largest_of(const float* logits, int64_t vocab) {
  VecF<N> best = VecF<N>{} - std::numeric_limits<float>::infinity(), poison = {};
  int64_t i = 0;
  for (; i + N <= vocab; i += N) {
    const VecF<N> x = load<N>(logits + i);
    best = x > best ? x : best;
    poison += x != x ? x : VecF<N>{};
  }
  float result = max<N>(best), nan = sum<N>(poison);
  for (; i < vocab; ++i) {
    result = logits[i] > result ? logits[i] : result;
    nan += logits[i] != logits[i] ? logits[i] : 0.0f;
  }
  return result + nan;
}

template <int N>
HEXAD_INLINE VecF<N> term(const float* logits, int64_t count, float shift, float scale) {
  if (count >= N) return exp_negative<N>((load<N>(logits) - shift) * scale);
  VecF<N> x = (load_part<N>(logits, count) - shift) * scale;
  for (int64_t i = count; i < N; ++i) x[i] = -std::numeric_limits<float>::infinity();
  return exp_negative<N>(x);
}

template <int N>
HEXAD_INLINE void sums_of(const float* logits, int64_t vocab, float shift, float scale, float* sums) {
  for (int64_t begin = 0; begin < vocab; begin += kSpan) {
    const int64_t end = std::min(vocab, begin + kSpan);
    VecF<N> total = {};
    for (int64_t i = begin; i < end; i += N) total += term<N>(logits + i, end - i, shift, scale);
    *sums++ = sum<N>(total);
  }
}

template <int N>
HEXAD_INLINE void terms_of(const float* logits, int64_t count, float shift, float scale, float* weights) {
  for (int64_t i = 0; i < count; i += N) {
    const VecF<N> weight = term<N>(logits + i, count - i, shift, scale);
    for (int64_t j = 0; j < std::min<int64_t>(N, count - i); ++j) weights[i + j] = weight[j];
  }
}

#if defined(HEXAD_TARGET_V4)
HEXAD_TARGET_V4 float largest_v4(const float* x, int64_t n) { return largest_of<16>(x, n); }
HEXAD_TARGET_V3 float largest_v3(const float* x, int64_t n) { return largest_of<8>(x, n); }
HEXAD_TARGET_V4 void sums_v4(const float* x, int64_t n, float shift, float scale, float* y) {
  sums_of<16>(x, n, shift, scale, y);
}
HEXAD_TARGET_V3 void sums_v3(const float* x, int64_t n, float shift, float scale, float* y) {
  sums_of<8>(x, n, shift, scale, y);
}
HEXAD_TARGET_V4 void terms_v4(const float* x, int64_t n, float shift, float scale, float* y) {
  terms_of<16>(x, n, shift, scale, y);
}
HEXAD_TARGET_V3 void terms_v3(const float* x, int64_t n, float shift, float scale, float* y) {
  terms_of<8>(x, n, shift, scale, y);
}
#endif
float largest_base(const float* x, int64_t n) { return largest_of<4>(x, n); }
void sums_base(const float* x, int64_t n, float shift, float scale, float* y) { sums_of<4>(x, n, shift, scale, y); }
void terms_base(const float* x, int64_t n, float shift, float scale, float* y) { terms_of<4>(x, n, shift, scale, y); }

const Kernels& kernels() {
  static const Kernels chosen = [] {
#if defined(HEXAD_TARGET_V4)
    if (isa() == Isa::v4) return Kernels{largest_v4, sums_v4, terms_v4};
    if (isa() == Isa::v3) return Kernels{largest_v3, sums_v3, terms_v3};
#endif
    return Kernels{largest_base, sums_base, terms_base};
  }();
  return chosen;
}

}  // namespace

float largest(const float* logits, int64_t vocab) { return kernels().largest(logits, vocab); }

void exp_sums(const float* logits, int64_t vocab, float shift, float scale, float* sums) {
  kernels().exp_sums(logits, vocab, shift, scale, sums);
}

void exp_terms(const float* logits, int64_t count, float shift, float scale, float* weights) {
  kernels().exp_terms(logits, count, shift, scale, weights);
}

int64_t indices_from(const float* logits, int64_t vocab, float threshold, int32_t* indices) {
  int64_t count = 0;
  for (int64_t i = 0; i < vocab; ++i) {
    indices[count] = static_cast<int32_t>(i);  // branchless: almost all are below
    count += logits[i] >= threshold;
  }
  return count;
}

ExpRow::ExpRow(const float* row, int64_t count, float top, float inverse_temperature)
    : logits(row), size(count), largest(top), scale(inverse_temperature), sums((count + kSpan - 1) / kSpan) {
  exp_sums(logits, size, largest, scale, sums.data());
  total = std::accumulate(sums.begin(), sums.end(), 0.0);
}

// First the span, then the place in it.
int32_t ExpRow::at(double rest) const {
  size_t span = 0;
  while (span + 1 < sums.size() && rest >= sums[span]) rest -= sums[span++];
  const int64_t begin = static_cast<int64_t>(span) * kSpan, count = std::min(kSpan, size - begin);
  float weights[kSpan];
  exp_terms(logits + begin, count, largest, scale, weights);
  int64_t chosen = -1;
  for (int64_t i = 0; i < count; ++i) {
    if (weights[i] <= 0) continue;
    chosen = i;
    rest -= weights[i];
    if (rest < 0) break;
  }
  if (chosen < 0) return static_cast<int32_t>(std::max_element(logits, logits + size) - logits);
  return static_cast<int32_t>(begin + chosen);
}

}  // namespace hexad::native
