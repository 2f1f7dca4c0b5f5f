// How a token is drawn from a row of logits: the request's parameters (vLLM's SamplingParams), the tokens that they
// leave, the draw and its log-probability.
#pragma once
#include <cstdint>
#include <vector>

namespace hexad::native {

// How one request draws its tokens.
struct SamplingParams {
  double temperature = 1.0;  // 0: greedy
  double top_p = 1.0;        // in (0, 1]; 1: off
  double min_p = 0.0;        // in [0, 1]; 0: off
  int64_t top_k = 0;         // 0 and -1: off

  bool greedy() const { return temperature == 0.0; }
  bool filtered() const { return top_p < 1.0 || min_p > 0.0 || top_k > 0; }
};

// The parameters as they take effect, by vLLM's rules: a temperature in (0, 0.01) is 0.01, and a greedy request has no
// filters. Throws sdk::Error (invalid argument): temperature outside [0, 2], top_p outside (0, 1], min_p outside
// [0, 1], top_k below -1.
SamplingParams normalized(const SamplingParams& params);

// Tokens with their weights exp(logit / temperature - largest), ascending by token; the distribution is their share.
struct Candidates {
  std::vector<int32_t> tokens;
  std::vector<double> weights;
  double total = 0;
};

// The tokens that sampling may draw from, in vLLM's order: temperature, then min-p, then top-k, then top-p.
// `params` is normalized, not greedy, and filtered; `largest` that of `logits` [vocab], finite.
//   min-p  drops a token whose probability is below min_p times the largest.
//   top-k  keeps the k largest logits, and every tie of the k-th.
//   top-p  sorts what is left ascending and drops it while the cumulative probability is at most 1 - top_p, but keeps
//          at least one; among equals the higher token stays.
// No full sort: only what can survive is looked at.
Candidates filter(const float* logits, int64_t vocab, float largest, const SamplingParams& params);

struct Draw {
  int32_t token = -1;
  float logprob = 0;
};

// Draws a token and tells its log-probability under the distribution that it was drawn from (vLLM's processed_logprobs:
// after temperature and filters; a greedy token's is that of the plain softmax). `params` is normalized; u in [0, 1) is
// the only source of chance. Token -1 when the row has a nan or no finite largest logit. Equal logits: greedy takes the
// lowest token.
Draw draw(const float* logits, int64_t vocab, const SamplingParams& params, double u);

}  // namespace hexad::native
