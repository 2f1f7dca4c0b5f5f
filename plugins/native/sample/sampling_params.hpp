// How one request draws its tokens: vLLM's SamplingParams, its checks and its normal form.
#pragma once
#include <cstdint>

namespace hexad::native {

struct SamplingParams {
  double temperature = 1.0;  // 0: greedy
  double top_p = 1.0;        // in (0, 1]; 1: off
  double min_p = 0.0;        // in [0, 1]; 0: off
  int64_t top_k = 0;         // 0 and -1: off

  bool greedy() const { return temperature == 0.0; }
  bool filtered() const { return top_p < 1.0 || min_p > 0.0 || top_k > 0; }
};

// The parameters as they take effect: a temperature in (0, 0.01) is 0.01, and a greedy request has no filters.
// Throws sdk::Error (invalid argument): temperature outside [0, 2], top_p outside (0, 1], min_p outside [0, 1], top_k
// below -1.
SamplingParams normalized(const SamplingParams& params);

}  // namespace hexad::native
