// Operators over the kernels of this folder: what rms_norm, swiglu and the others run on a GPU. Shapes and meanings are
// those of the operator's own header; everything is enqueued on the current stream, and nothing waits for it. A build
// without CUDA has no_cuda.cpp in their place, where has_kernels is false.
#pragma once
#include <array>

#include <ATen/core/Tensor.h>

#include "modeling/op/fp8/fp8.hpp"
#include "modeling/op/rope.hpp"

namespace hexad::modeling::cuda {

// A tensor on a GPU of fp32, bf16 or fp16.
bool has_kernels(const at::Tensor& x);

// Of a GPU: its compute capability as 10 x major + minor. Throws where this build has no kernels for it.
int capability(at::Device device);

// rms_norm.hpp. The width is a multiple of 8 and at most 16384: fits_norm.
bool fits_norm(const at::Tensor& x, const at::Tensor& weight);
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);
std::array<at::Tensor, 2> add_rms_norm(const at::Tensor& hidden, const at::Tensor& delta, const at::Tensor& weight,
                                       double eps);
// fp32 hidden + delta of another type.
at::Tensor residual_add(const at::Tensor& hidden, const at::Tensor& delta);

// swiglu.hpp; columns are a multiple of 8.
at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);

// rope.hpp; head_dim is a multiple of 16. The three results lie side by side in one tensor, as do their gradients.
std::array<at::Tensor, 3> rotate_heads(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Rope& rope);

// table [V, H], ids int64 [T] -> fp32 [T, H]; no gradient.
at::Tensor embed_rows(const at::Tensor& table, const at::Tensor& ids);

// logit_rows.hpp, over contiguous fp32 logits [N, V]; `targets` int64 [N]. `kept`: fp16 [N, V] to copy the logits
// into, or undefined.
struct RowStatistics {
  at::Tensor log_sum, entropy, target_logits;  // fp32 [N]
};
RowStatistics softmax_statistics(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& kept = {});
// The gradient of the logits (fp32, or kept) times `factor`, into `grads` [N, V] of any of the types; grads of the same
// element size may be the logits.
void softmax_gradient(const at::Tensor& logits, const RowStatistics& statistics, const at::Tensor& grad_logprob,
                      const at::Tensor& grad_entropy, const at::Tensor& targets, double factor, at::Tensor grads);

// linear.hpp; rows of g may have a stride; g and x have one 16-bit type or fp32.
void accumulate_product(const at::Tensor& sum, const at::Tensor& g, const at::Tensor& x);

// fp8.hpp. The largest magnitude of the parts, fp32 [1].
at::Tensor fp8_largest(const std::vector<at::Tensor>& parts);
// x [R, C], C a multiple of 16, into FP8 rows [R, C] and columns [C, at least R] (the rest zeros), views with any
// distance between their rows that is a multiple of 16; either may be undefined. Sets range.inverse, if that is
// defined.
void fp8_cast(const at::Tensor& x, const Fp8Range& range, const at::Tensor& rows, const at::Tensor& columns);
// fp8_blocks.hpp. x into the copies of `to` that are defined.
void fp8_cast_scaled(const at::Tensor& x, const Fp8Tensor& to);
// fp8_product of strips and blocks: Hopper alone.
at::Tensor fp8_scaled_product(const Fp8Matrix& a, const Fp8Matrix& b, const at::Tensor& bias, at::ScalarType type);
void accumulate_fp8_product(const at::Tensor& sum, const Fp8Matrix& g, const Fp8Matrix& x);

// One update of Adam or AdamW over flat fp32 tensors, in one pass; `rounded`: takes the new parameters in its own
// dtype, or undefined.
struct AdamStep {
  int64_t number = 1;  // of this update, from 1
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0, grad_scale = 1;
  bool decoupled = true, maximize = false;
};
void adam_step(const AdamStep& step, const at::Tensor& param, const at::Tensor& grad, const at::Tensor& average,
               const at::Tensor& square, const at::Tensor& rounded);

}  // namespace hexad::modeling::cuda
