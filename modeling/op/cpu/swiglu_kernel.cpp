#include "modeling/op/cpu/swiglu_kernel.hpp"

namespace hexad::modeling::cpu {
namespace {

template <typename T>
HEXAD_INLINE void forward(const T* gate, const T* up, T* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float g = load(gate + i);
    store(y + i, g / (1.0f + exp_approx(-g)) * load(up + i));
  }
}

// silu(g) = g * s with s = sigmoid(g); its derivative is s * (1 + g * (1 - s)).
template <typename T>
HEXAD_INLINE void backward(const T* grad, const T* gate, const T* up, T* grad_gate, T* grad_up, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float g = load(gate + i), d = load(grad + i);
    const float s = 1.0f / (1.0f + exp_approx(-g));
    store(grad_up + i, d * g * s);
    store(grad_gate + i, d * load(up + i) * s * (1.0f + g * (1.0f - s)));
  }
}

}  // namespace

HEXAD_VECTOR_CLONES
void swiglu_forward(const float* gate, const float* up, float* y, int64_t n) { forward(gate, up, y, n); }

HEXAD_VECTOR_CLONES
void swiglu_forward(const BFloat16* gate, const BFloat16* up, BFloat16* y, int64_t n) { forward(gate, up, y, n); }

HEXAD_VECTOR_CLONES
void swiglu_backward(const float* grad, const float* gate, const float* up, float* grad_gate, float* grad_up,
                     int64_t n) {
  backward(grad, gate, up, grad_gate, grad_up, n);
}

HEXAD_VECTOR_CLONES
void swiglu_backward(const BFloat16* grad, const BFloat16* gate, const BFloat16* up, BFloat16* grad_gate,
                     BFloat16* grad_up, int64_t n) {
  backward(grad, gate, up, grad_gate, grad_up, n);
}

}  // namespace hexad::modeling::cpu
