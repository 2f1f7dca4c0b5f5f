#include "plugins/native/sample/sampler.hpp"

#include <hexad/services.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "plugins/native/sample/row_kernel.hpp"

namespace hexad::native {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A bound on the k-th largest logit: the k-th largest of the largest of k or more spans.
float top_k_bound(const float* logits, int64_t vocab, int64_t k) {
  const int64_t span = std::max<int64_t>(1, std::min<int64_t>(64, vocab / k));
  std::vector<float> best;
  for (int64_t begin = 0; begin < vocab; begin += span) {
    best.push_back(*std::max_element(logits + begin, logits + std::min(vocab, begin + span)));
  }
  std::nth_element(best.begin(), best.begin() + (k - 1), best.end(), std::greater<>());
  return best[k - 1];
}

std::vector<int32_t> at_least(const float* logits, int64_t vocab, float threshold) {
  std::vector<int32_t> tokens(vocab);
  tokens.resize(indices_from(logits, vocab, threshold, tokens.data()));
  return tokens;
}

void keep_top_k(const float* logits, int64_t k, std::vector<int32_t>& tokens) {
  if (k <= 0 || k >= static_cast<int64_t>(tokens.size())) return;
  std::vector<float> values;
  for (const int32_t token : tokens) values.push_back(logits[token]);
  std::nth_element(values.begin(), values.begin() + (k - 1), values.end(), std::greater<>());
  std::erase_if(tokens, [&, threshold = values[k - 1]](int32_t token) { return logits[token] < threshold; });
}

// Drops the smallest while `below` plus their sum is at most (1 - top_p) * total. `below` is the weight of tokens that
// are smaller than all of these and not among them.
void keep_top_p(Candidates& candidates, double below, double total, double top_p) {
  const size_t count = candidates.tokens.size();
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return candidates.weights[a] < candidates.weights[b]; });
  std::vector<bool> dropped(count, false);
  double cumulative = below;
  for (size_t i = 0; i + 1 < count; ++i) {
    cumulative += candidates.weights[order[i]];
    if (cumulative > (1.0 - top_p) * total) break;
    dropped[order[i]] = true;
  }
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (dropped[i]) continue;
    candidates.tokens[kept] = candidates.tokens[i];
    candidates.weights[kept++] = candidates.weights[i];
  }
  candidates.tokens.resize(kept);
  candidates.weights.resize(kept);
}

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

SamplingParams normalized(const SamplingParams& params) {
  constexpr double kMinTemperature = 0.01;
  // Negated, so that nan is refused too.
  if (!(params.temperature >= 0.0 && params.temperature <= 2.0)) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "temperature must be in [0, 2], got %g", params.temperature);
  }
  if (!(params.top_p > 0.0 && params.top_p <= 1.0)) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "top_p must be in (0, 1], got %g (1 turns it off)", params.top_p);
  }
  if (!(params.min_p >= 0.0 && params.min_p <= 1.0)) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "min_p must be in [0, 1], got %g (0 turns it off)", params.min_p);
  }
  if (params.top_k < -1) {
    sdk::fail(HEXAD_INVALID_ARGUMENT, "top_k must be at least 1, or 0 to turn it off, got %lld",
              static_cast<long long>(params.top_k));
  }
  if (params.greedy()) return {.temperature = 0.0};
  SamplingParams result = params;
  result.temperature = std::max(params.temperature, kMinTemperature);
  return result;
}

Candidates filter(const float* logits, int64_t vocab, float largest, const SamplingParams& params) {
  const double scale = 1.0 / params.temperature;
  const auto weight = [&](int32_t token) { return std::exp((double(logits[token]) - double(largest)) * scale); };
  const bool top_k = params.top_k > 0 && params.top_k < vocab, top_p = params.top_p < 1.0;
  // Logits that survive min-p, as far as fp32 can tell; exactly below.
  float threshold = -kInfinity;
  if (params.min_p > 0) threshold = float(largest + (std::log(params.min_p) - 1e-3) * params.temperature);
  if (top_k) threshold = std::max(threshold, top_k_bound(logits, vocab, params.top_k));

  double total = 0, below = 0;
  const bool only_top_p = top_p && !top_k && params.min_p <= 0;
  Candidates result;
  if (only_top_p) {
    std::vector<float> sums((vocab + kSpan - 1) / kSpan);
    exp_sums(logits, vocab, largest, float(scale), sums.data());
    total = std::accumulate(sums.begin(), sums.end(), 0.0);
  }
  for (double reach = only_top_p ? 8.0 : 0.0;; reach *= 2) {
    if (only_top_p) threshold = reach > 90 ? -kInfinity : float(largest - reach * params.temperature);
    result.tokens = at_least(logits, vocab, threshold);
    if (params.min_p > 0) std::erase_if(result.tokens, [&](int32_t token) { return weight(token) < params.min_p; });
    if (top_k) keep_top_k(logits, params.top_k, result.tokens);
    result.weights.clear();
    for (const int32_t token : result.tokens) result.weights.push_back(weight(token));
    const double sum = std::accumulate(result.weights.begin(), result.weights.end(), 0.0);
    if (!only_top_p || threshold == -kInfinity) total = sum;
    below = std::max(0.0, total - sum);
    // Everything left out must be droppable, with a margin for the rounding of fp32 sums.
    if (!only_top_p || threshold == -kInfinity || below + 1e-5 * total <= (1.0 - params.top_p) * total) break;
  }
  if (top_p) keep_top_p(result, below, total, params.top_p);
  result.total = std::accumulate(result.weights.begin(), result.weights.end(), 0.0);
  return result;
}

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
