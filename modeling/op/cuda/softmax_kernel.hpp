// Softmax of fp32 logits by rows, where a row is a vocabulary: what the log-prob head needs of it.
#pragma once
#include <cstdint>

#include "modeling/op/cuda/element.hpp"

struct CUstream_st;

namespace hexad::modeling::cuda {

// logits [.., columns], contiguous; -inf counts as absent. Result r is that of row source[r] times scale[r], where
// these are given, else of row r. Writes fp32 [rows] each: log of the sum of exponentials,
// entropy, and the target's logit (0 where the target is negative). `kept`, where there is one, takes the logits in
// fp16 (at most 65504 in size): what their gradient can be made of without another product.
struct SoftmaxStatisticsCall {
  const float* logits = nullptr;
  const int64_t* targets = nullptr;  // may be null, then so is target_logits
  const int32_t* source = nullptr;
  const float* scale = nullptr;
  float *log_sum = nullptr, *entropy = nullptr, *target_logits = nullptr;
  void* kept = nullptr;
  int64_t rows = 0, columns = 0;
};
void softmax_statistics(const SoftmaxStatisticsCall& call, CUstream_st* stream);

// grads[r, j] = factor * (grad_logprob * (1[j = target] - p_j) - grad_entropy * p_j * (log p_j + H)), of `type`. Logits
// are fp32 or, kept, fp16; grads of the same size may be the logits themselves.
struct SoftmaxGradientCall {
  const void* logits = nullptr;
  const float *log_sum = nullptr, *entropy = nullptr, *grad_logprob = nullptr, *grad_entropy = nullptr;
  const int64_t* targets = nullptr;
  void* grads = nullptr;
  int64_t rows = 0, columns = 0;
  float factor = 1;
  Element logit_type = Element::f32, type = Element::f32;
};
void softmax_gradient(const SoftmaxGradientCall& call, CUstream_st* stream);

}  // namespace hexad::modeling::cuda
