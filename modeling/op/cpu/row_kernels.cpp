#include "modeling/op/cpu/row_kernels.hpp"

#include <cmath>
#include <limits>

namespace hexad::modeling::cpu {
namespace {

template <typename T>
HEXAD_INLINE void norm_forward(const T* x, const T* weight, T* y, float* inv_rms, int64_t rows, int64_t dim,
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
HEXAD_INLINE void norm_backward(const T* grad, const T* x, const T* weight, const float* inv_rms, T* grad_x,
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

template <typename T>
HEXAD_INLINE void rotate(const T* x, const float* cos, const float* sin, T* y, int64_t tokens, int64_t heads,
                         int64_t half, float direction) {
  for (int64_t token = 0; token < tokens; ++token, cos += half, sin += half) {
    for (int64_t head = 0; head < heads; ++head, x += 2 * half, y += 2 * half) {
#pragma omp simd
      for (int64_t i = 0; i < half; ++i) {
        const float a = load(x + i), b = load(x + half + i), s = direction * sin[i];
        store(y + i, a * cos[i] - b * s);
        store(y + half + i, b * cos[i] + a * s);
      }
    }
  }
}

template <typename T>
HEXAD_INLINE void gate_forward(const T* gate, const T* up, T* y, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float g = load(gate + i);
    store(y + i, g / (1.0f + exp_approx(-g)) * load(up + i));
  }
}

// silu(g) = g * s with s = sigmoid(g); its derivative is s * (1 + g * (1 - s)).
template <typename T>
HEXAD_INLINE void gate_backward(const T* grad, const T* gate, const T* up, T* grad_gate, T* grad_up, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float g = load(gate + i), d = load(grad + i);
    const float s = 1.0f / (1.0f + exp_approx(-g));
    store(grad_up + i, d * g * s);
    store(grad_gate + i, d * load(up + i) * s * (1.0f + g * (1.0f - s)));
  }
}

// Below this, a log-probability counts as absent: its probability is 0 in fp32, and 0 times it must be 0.
constexpr float kFloor = -100.0f;

HEXAD_INLINE float above_floor(float x) { return x < kFloor ? kFloor : x; }

template <typename T>
HEXAD_INLINE double squares_of(const T* x, int64_t count) {
  double squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < count; ++i) squares += double(load(x + i)) * double(load(x + i));
  return squares;
}

}  // namespace

HEXAD_VECTOR_CLONES
void rms_norm_forward(const float* x, const float* weight, float* y, float* inv_rms, int64_t rows, int64_t dim,
                      float eps) {
  norm_forward(x, weight, y, inv_rms, rows, dim, eps);
}

HEXAD_VECTOR_CLONES
void rms_norm_forward(const BFloat16* x, const BFloat16* weight, BFloat16* y, float* inv_rms, int64_t rows, int64_t dim,
                      float eps) {
  norm_forward(x, weight, y, inv_rms, rows, dim, eps);
}

HEXAD_VECTOR_CLONES
void rms_norm_backward(const float* grad, const float* x, const float* weight, const float* inv_rms, float* grad_x,
                       float* grad_weight, int64_t rows, int64_t dim) {
  norm_backward(grad, x, weight, inv_rms, grad_x, grad_weight, rows, dim);
}

HEXAD_VECTOR_CLONES
void rms_norm_backward(const BFloat16* grad, const BFloat16* x, const BFloat16* weight, const float* inv_rms,
                       BFloat16* grad_x, float* grad_weight, int64_t rows, int64_t dim) {
  norm_backward(grad, x, weight, inv_rms, grad_x, grad_weight, rows, dim);
}

HEXAD_VECTOR_CLONES
void rope_rotate(const float* x, const float* cos, const float* sin, float* y, int64_t tokens, int64_t heads,
                 int64_t half, float direction) {
  rotate(x, cos, sin, y, tokens, heads, half, direction);
}

HEXAD_VECTOR_CLONES
void rope_rotate(const BFloat16* x, const float* cos, const float* sin, BFloat16* y, int64_t tokens, int64_t heads,
                 int64_t half, float direction) {
  rotate(x, cos, sin, y, tokens, heads, half, direction);
}

HEXAD_VECTOR_CLONES
void swiglu_forward(const float* gate, const float* up, float* y, int64_t n) { gate_forward(gate, up, y, n); }

HEXAD_VECTOR_CLONES
void swiglu_forward(const BFloat16* gate, const BFloat16* up, BFloat16* y, int64_t n) { gate_forward(gate, up, y, n); }

HEXAD_VECTOR_CLONES
void swiglu_backward(const float* grad, const float* gate, const float* up, float* grad_gate, float* grad_up,
                     int64_t n) {
  gate_backward(grad, gate, up, grad_gate, grad_up, n);
}

HEXAD_VECTOR_CLONES
void swiglu_backward(const BFloat16* grad, const BFloat16* gate, const BFloat16* up, BFloat16* grad_gate,
                     BFloat16* grad_up, int64_t n) {
  gate_backward(grad, gate, up, grad_gate, grad_up, n);
}

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

HEXAD_VECTOR_CLONES
double sum_of_squares(const float* x, int64_t count) { return squares_of(x, count); }

HEXAD_VECTOR_CLONES
double sum_of_squares(const BFloat16* x, int64_t count) { return squares_of(x, count); }

}  // namespace hexad::modeling::cpu
