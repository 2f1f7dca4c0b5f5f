#include "modeling/op/cpu/rms_norm_kernel.hpp"

#include <cmath>

namespace hexad::modeling::cpu {
namespace {

template <typename T>
HEXAD_INLINE void forward_rows(const T* x, const T* weight, T* y, float* inv_rms, int64_t rows, int64_t dim,
                               float eps) {
  for (int64_t row = 0; row < rows; ++row, x += dim, y += dim) {
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < dim; ++i) squares += load(x + i) * load(x + i);
    const float scale = 1.0f / std::sqrt(squares / float(dim) + eps);
    inv_rms[row] = scale;
#pragma omp simd
    for (int64_t i = 0; i < dim; ++i) store(y + i, load(x + i) * scale * load(weight + i));
  }
}

// With n = x * r and g = grad * weight: grad_x = r * (g - n * mean(g * n)), grad_weight = sum over rows of grad * n.
template <typename T>
HEXAD_INLINE void backward_rows(const T* grad, const T* x, const T* weight, const float* inv_rms, T* grad_x,
                                float* grad_weight, int64_t rows, int64_t dim) {
  for (int64_t row = 0; row < rows; ++row, grad += dim, x += dim, grad_x += dim) {
    const float scale = inv_rms[row];
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t i = 0; i < dim; ++i) dot += load(grad + i) * load(weight + i) * load(x + i);
    const float shift = dot * scale * scale / float(dim);
#pragma omp simd
    for (int64_t i = 0; i < dim; ++i) {
      const float g = load(grad + i), v = load(x + i);
      grad_weight[i] += g * v * scale;
      store(grad_x + i, scale * (g * load(weight + i) - v * shift));
    }
  }
}

}  // namespace

HEXAD_VECTOR_CLONES
void rms_norm_forward(const float* x, const float* weight, float* y, float* inv_rms, int64_t rows, int64_t dim,
                      float eps) {
  forward_rows(x, weight, y, inv_rms, rows, dim, eps);
}

HEXAD_VECTOR_CLONES
void rms_norm_forward(const BFloat16* x, const BFloat16* weight, BFloat16* y, float* inv_rms, int64_t rows, int64_t dim,
                      float eps) {
  forward_rows(x, weight, y, inv_rms, rows, dim, eps);
}

HEXAD_VECTOR_CLONES
void rms_norm_backward(const float* grad, const float* x, const float* weight, const float* inv_rms, float* grad_x,
                       float* grad_weight, int64_t rows, int64_t dim) {
  backward_rows(grad, x, weight, inv_rms, grad_x, grad_weight, rows, dim);
}

HEXAD_VECTOR_CLONES
void rms_norm_backward(const BFloat16* grad, const BFloat16* x, const BFloat16* weight, const float* inv_rms,
                       BFloat16* grad_x, float* grad_weight, int64_t rows, int64_t dim) {
  backward_rows(grad, x, weight, inv_rms, grad_x, grad_weight, rows, dim);
}

}  // namespace hexad::modeling::cpu
