#include "plugins/native/sample/sampling_params.hpp"

#include <hexad/services.hpp>

#include <algorithm>

namespace hexad::native {

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

}  // namespace hexad::native
