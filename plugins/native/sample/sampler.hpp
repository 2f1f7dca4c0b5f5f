// Draws a token from a row of logits and tells its log-probability under the distribution that it was drawn from
// (vLLM's processed_logprobs: after temperature and filters; a greedy token's is that of the plain softmax).
#pragma once
#include <cstdint>

#include "plugins/native/sample/sampling_params.hpp"

namespace hexad::native {

struct Draw {
  int32_t token = -1;
  float logprob = 0;
};

// `params` is normalized; u in [0, 1) is the only source of chance. Token -1 when the row has a nan or no finite
// largest logit. Equal logits: greedy takes the lowest token.
Draw draw(const float* logits, int64_t vocab, const SamplingParams& params, double u);

}  // namespace hexad::native
