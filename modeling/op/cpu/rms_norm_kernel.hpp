// CPU kernels of rms_norm.hpp over rows of a contiguous [rows, dim] matrix; T is float or cpu::BFloat16.
#pragma once
#include <cstdint>

#include "modeling/op/cpu/vector_math.hpp"

namespace hexad::modeling::cpu {

// y = x * r * weight, r = 1 / sqrt(mean(x^2) + eps), kept in inv_rms [rows].
void rms_norm_forward(const float* x, const float* weight, float* y, float* inv_rms, int64_t rows, int64_t dim,
                      float eps);
void rms_norm_forward(const BFloat16* x, const BFloat16* weight, BFloat16* y, float* inv_rms, int64_t rows, int64_t dim,
                      float eps);

// Writes the gradient of x and adds the rows' part of the weight's gradient to grad_weight [dim].
void rms_norm_backward(const float* grad, const float* x, const float* weight, const float* inv_rms, float* grad_x,
                       float* grad_weight, int64_t rows, int64_t dim);
void rms_norm_backward(const BFloat16* grad, const BFloat16* x, const BFloat16* weight, const float* inv_rms,
                       BFloat16* grad_x, float* grad_weight, int64_t rows, int64_t dim);

}  // namespace hexad::modeling::cpu
