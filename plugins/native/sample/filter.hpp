// The tokens that sampling may draw from, in vLLM's order: temperature, then min-p, then top-k, then top-p.
#pragma once
#include <cstdint>
#include <vector>

#include "plugins/native/sample/sampling_params.hpp"

namespace hexad::native {

// Tokens with their weights exp(logit / temperature - largest), ascending by token; the distribution is their share.
struct Candidates {
  std::vector<int32_t> tokens;
  std::vector<double> weights;
  double total = 0;
};

// `params` is normalized, not greedy, and filtered; `largest` that of `logits` [vocab], finite.
//   min-p  drops a token whose probability is below min_p times the largest.
//   top-k  keeps the k largest logits, and every tie of the k-th.
//   top-p  sorts what is left ascending and drops it while the cumulative probability is at most 1 - top_p, but keeps
//   at
//          least one; among equals the higher token stays.
// No full sort: only what can survive is looked at.
Candidates filter(const float* logits, int64_t vocab, float largest, const SamplingParams& params);

}  // namespace hexad::native
