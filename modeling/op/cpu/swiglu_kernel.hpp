// CPU kernels of swiglu.hpp over n elements; T is float or cpu::BFloat16.
#pragma once
#include <cstdint>

#include "modeling/op/cpu/vector_math.hpp"

namespace hexad::modeling::cpu {

void swiglu_forward(const float* gate, const float* up, float* y, int64_t n);
void swiglu_forward(const BFloat16* gate, const BFloat16* up, BFloat16* y, int64_t n);

void swiglu_backward(const float* grad, const float* gate, const float* up, float* grad_gate, float* grad_up,
                     int64_t n);
void swiglu_backward(const BFloat16* grad, const BFloat16* gate, const BFloat16* up, BFloat16* grad_gate,
                     BFloat16* grad_up, int64_t n);

}  // namespace hexad::modeling::cpu
