// CPU kernels that go over contiguous rows and elements: of op/rms_norm.hpp, rope.hpp, swiglu.hpp, row/logit_rows.hpp
// and parallel/grad_norm.hpp.
#pragma once
#include <cstdint>

#include "modeling/op/cpu/vector_math.hpp"

namespace hexad::modeling::cpu {

// [rows, dim]: y = x * r * weight, r = 1 / sqrt(mean(x^2) + eps), kept in inv_rms [rows].
void rms_norm_forward(const float* x, const float* weight, float* y, float* inv_rms, int64_t rows, int64_t dim,
                      float eps);
void rms_norm_forward(const BFloat16* x, const BFloat16* weight, BFloat16* y, float* inv_rms, int64_t rows, int64_t dim,
                      float eps);

// Writes the gradient of x and adds the rows' part of the weight's gradient to grad_weight [dim].
void rms_norm_backward(const float* grad, const float* x, const float* weight, const float* inv_rms, float* grad_x,
                       float* grad_weight, int64_t rows, int64_t dim);
void rms_norm_backward(const BFloat16* grad, const BFloat16* x, const BFloat16* weight, const float* inv_rms,
                       BFloat16* grad_x, float* grad_weight, int64_t rows, int64_t dim);

// x, y [tokens, heads, 2 * half] contiguous, cos and sin [tokens, half]. direction 1 rotates, -1 rotates back (which is
// the backward pass).
void rope_rotate(const float* x, const float* cos, const float* sin, float* y, int64_t tokens, int64_t heads,
                 int64_t half, float direction);
void rope_rotate(const BFloat16* x, const float* cos, const float* sin, BFloat16* y, int64_t tokens, int64_t heads,
                 int64_t half, float direction);

// n elements.
void swiglu_forward(const float* gate, const float* up, float* y, int64_t n);
void swiglu_forward(const BFloat16* gate, const BFloat16* up, BFloat16* y, int64_t n);
void swiglu_backward(const float* grad, const float* gate, const float* up, float* grad_gate, float* grad_up,
                     int64_t n);
void swiglu_backward(const BFloat16* grad, const BFloat16* gate, const BFloat16* up, BFloat16* grad_gate,
                     BFloat16* grad_up, int64_t n);

// [rows, vocab] of fp32 logits; those of -inf count as absent.
void softmax_statistics(const float* logits, float* log_sum, float* entropy, int64_t rows, int64_t vocab);
// Replaces the logits by the gradient that logit_rows.hpp describes.
void softmax_gradient(float* logits, const float* log_sum, const float* entropy, const float* grad_logprob,
                      const float* grad_entropy, const int64_t* targets, int64_t rows, int64_t vocab);

// x [count], squared and added in fp64.
double sum_of_squares(const float* x, int64_t count);
double sum_of_squares(const BFloat16* x, int64_t count);

}  // namespace hexad::modeling::cpu
