// CPU kernels of softmax_rows.hpp over rows of fp32 logits [rows, vocab]; -inf entries count as absent.
#pragma once
#include <cstdint>

#include "modeling/op/cpu/vector_math.hpp"

namespace hexad::modeling::cpu {

void softmax_statistics(const float* logits, float* log_sum, float* entropy, int64_t rows, int64_t vocab);

// Replaces the logits by the gradient described in softmax_rows.hpp.
void softmax_gradient(float* logits, const float* log_sum, const float* entropy, const float* grad_logprob,
                      const float* grad_entropy, const int64_t* targets, int64_t rows, int64_t vocab);

}  // namespace hexad::modeling::cpu
