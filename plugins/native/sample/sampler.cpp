#include "plugins/native/sample/sampler.hpp"

#include <algorithm>
#include <cmath>

#include "plugins/native/sample/exp_row.hpp"
#include "plugins/native/sample/filter.hpp"
#include "plugins/native/sample/row_kernel.hpp"

namespace hexad::native {
namespace {

float logprob(const ExpRow& row, int32_t token) {
  return float((double(row.logits[token]) - double(row.largest)) * double(row.scale) - std::log(row.total));
}

// Inverse of the cumulative distribution.
Draw draw_unfiltered(const ExpRow& row, double u) {
  const int32_t token = row.at(u * row.total);
  return {token, logprob(row, token)};
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
    return {token, logprob(ExpRow(logits, vocab, top, 1.0f), token)};
  }
  if (params.filtered()) return draw_filtered(filter(logits, vocab, top, params), u);
  return draw_unfiltered(ExpRow(logits, vocab, top, float(1.0 / params.temperature)), u);
}

}  // namespace hexad::native
