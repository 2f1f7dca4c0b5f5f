// Draws a token from each row of logits and tells its log-probability: the semantics of sample/sampler.hpp, on the GPU.
// One pass over an unfiltered row; only tokens and log-probs leave the device.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace hexad::native::cuda {

inline constexpr int kMaxVocab = 1 << 18;

struct DrawTask {
  double u;            // in [0, 1): the only source of chance
  double temperature;  // 0: greedy
  double top_p, min_p;
  int32_t top_k;  // 0 and below: off
  int32_t row;    // of the logits; below 0: nothing to draw
};

// logits fp32 [rows, vocab]; tasks, tokens and logprobs [count] on the device. A token is -1 when its row has a nan or
// no finite largest logit. The weights of the top-p filter are summed in units of 2^-40 of the largest.
void sample(const float* logits, int vocab, const DrawTask* tasks, int32_t* tokens, float* logprobs, int count,
            cudaStream_t stream);

}  // namespace hexad::native::cuda
