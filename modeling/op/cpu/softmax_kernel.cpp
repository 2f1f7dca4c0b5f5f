#include "modeling/op/cpu/softmax_kernel.hpp"

#include <cmath>
#include <limits>

namespace hexad::modeling::cpu {
namespace {

// Below this, a log-probability counts as absent: its probability is 0 in fp32, and 0 times it must be 0.
constexpr float kFloor = -100.0f;

HEXAD_INLINE float above_floor(float x) { return x < kFloor ? kFloor : x; }

}  // namespace

HEXAD_VECTOR_CLONES
void softmax_statistics(const float* logits, float* log_sum, float* entropy, int64_t rows, int64_t vocab) {
  for (int64_t row = 0; row < rows; ++row, logits += vocab) {
    float largest = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < vocab; ++i) largest = logits[i] > largest ? logits[i] : largest;
    float sum = 0, weighted = 0;
#pragma omp simd reduction(+ : sum, weighted)
    for (int64_t i = 0; i < vocab; ++i) {
      const float distance = above_floor(logits[i] - largest), e = exp_approx(distance);
      sum += e;
      weighted += e * distance;
    }
    log_sum[row] = largest + std::log(sum);
    entropy[row] = std::log(sum) - weighted / sum;
  }
}

HEXAD_VECTOR_CLONES
void softmax_gradient(float* logits, const float* log_sum, const float* entropy, const float* grad_logprob,
                      const float* grad_entropy, const int64_t* targets, int64_t rows, int64_t vocab) {
  for (int64_t row = 0; row < rows; ++row, logits += vocab) {
    const float lse = log_sum[row], h = entropy[row], g = grad_logprob[row], ge = grad_entropy[row];
#pragma omp simd
    for (int64_t i = 0; i < vocab; ++i) {
      const float logprob = above_floor(logits[i] - lse);
      logits[i] = -exp_approx(logprob) * (g + ge * (logprob + h));
    }
    if (targets[row] >= 0) logits[targets[row]] += g;
  }
}

}  // namespace hexad::modeling::cpu
