// One pass over the state of Adam or AdamW: master, gradient and both averages are read once, and the weights in the
// compute dtype written beside the master.
#pragma once
#include <cstdint>

#include "modeling/op/cuda/element.hpp"

struct CUstream_st;

namespace hexad::modeling::cuda {

// torch.optim's update (foreach/fused form): g = grad_scale * grad (negated to maximize), decay decoupled or added to
// g, param -= lr / correction1 * average / (sqrt(square) / sqrt(correction2) + eps), with correction_i = 1 -
// beta_i^step. fp32 arrays of `count` elements; `rounded` may be null. `aligned`: all begin on four of their elements.
struct AdamCall {
  float* param = nullptr;
  const float* grad = nullptr;
  float *average = nullptr, *square = nullptr;
  void* rounded = nullptr;
  Element rounded_type = Element::bf16;
  int64_t count = 0;
  float lr = 0, beta1 = 0, beta2 = 0, eps = 0, decay = 0, correction1 = 1, correction2_root = 1, grad_scale = 1;
  float rest1 = 1, rest2 = 1;  // 1 - beta_i, rounded once: of 0.999 the difference of floats is off by 1e-5
  bool decoupled = true, maximize = false, aligned = false;
};
void adam_step(const AdamCall& call, CUstream_st* stream);

}  // namespace hexad::modeling::cuda
