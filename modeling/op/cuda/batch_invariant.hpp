// The batch-invariant forward pass on a GPU in bf16: what a row or token gives has the same bits whatever is
// computed beside it. The native generator runs the same kernels over its paged cache, so log-probs of a rollout and of
// training are equal bit for bit. Everything is enqueued on the current stream. Throws Error for tensors that do not
// fit; nothing falls back to other kernels.
#pragma once
#include <ATen/core/Tensor.h>

#include "modeling/op/attention/packed_attention.hpp"

namespace hexad::modeling::cuda {

// x [T, in] * weight [out, in]^T + bias [out] (undefined: none) -> [T, out], or into `out` of bf16 or fp32; `in` and
// `out` are multiples of 8. Not differentiable.
at::Tensor invariant_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);
void invariant_linear_out(at::Tensor out, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

// packed_attention() of heads of 64 or 128 without a window, and log_sums fp32 [T, Hq]: natural logarithms of the sums
// of exponentials. Not differentiable: cudnn_attention.hpp has the operator.
void invariant_attention_out(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& offsets,
                             int64_t max_length, at::Tensor out, at::Tensor log_sums);

}  // namespace hexad::modeling::cuda
