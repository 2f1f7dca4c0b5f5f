#include "plugins/native/sample/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "plugins/native/sample/filter.hpp"
#include "plugins/native/sample/row_kernel.hpp"

namespace hexad::native {
namespace {

// The whole row's distribution, as sums of exponentials by span.
struct Row {
  const float* logits;
  int64_t vocab;
  float largest, scale;
  std::vector<float> sums;
  double total;

  Row(const float* row, int64_t size, float top, float inverse_temperature)
      : logits(row), vocab(size), largest(top), scale(inverse_temperature), sums((size + kSpan - 1) / kSpan) {
    exp_sums(logits, vocab, largest, scale, sums.data());
    total = std::accumulate(sums.begin(), sums.end(), 0.0);
  }
  float logprob(int32_t token) const {
    return float((double(logits[token]) - double(largest)) * double(scale) - std::log(total));
  }
};

// Inverse of the cumulative distribution: first the span, then the token in it.
Draw draw_unfiltered(const Row& row, double u) {
  double rest = u * row.total;
  size_t span = 0;
  while (span + 1 < row.sums.size() && rest >= row.sums[span]) rest -= row.sums[span++];
  const int64_t begin = static_cast<int64_t>(span) * kSpan, count = std::min(kSpan, row.vocab - begin);
  float weights[kSpan];
  exp_terms(row.logits + begin, count, row.largest, row.scale, weights);
  int64_t chosen = -1;  // the last one with any weight, if rounding leaves some of `rest`
  for (int64_t i = 0; i < count; ++i) {
    if (weights[i] <= 0) continue;
    chosen = i;
    rest -= weights[i];
    if (rest < 0) break;
  }
  if (chosen < 0) chosen = std::max_element(row.logits, row.logits + row.vocab) - row.logits - begin;
  const auto token = static_cast<int32_t>(begin + chosen);
  return {token, row.logprob(token)};
}

Draw draw_filtered(const Candidates& candidates, double u) {
  double rest = u * candidates.total;
  size_t chosen = 0;
  while (chosen + 1 < candidates.tokens.size() && rest >= candidates.weights[chosen]) {
    rest -= candidates.weights[chosen++];
  }
  return {candidates.tokens[chosen], float(std::log(candidates.weights[chosen] / candidates.total))};
}

}  // namespace

Draw draw(const float* logits, int64_t vocab, const SamplingParams& params, double u) {
  const float top = largest(logits, vocab);
  if (!std::isfinite(top)) return {};
  if (params.greedy()) {
    const auto token = static_cast<int32_t>(std::max_element(logits, logits + vocab) - logits);
    return {token, Row(logits, vocab, top, 1.0f).logprob(token)};
  }
  if (params.filtered()) return draw_filtered(filter(logits, vocab, top, params), u);
  return draw_unfiltered(Row(logits, vocab, top, float(1.0 / params.temperature)), u);
}

}  // namespace hexad::native
