// Packed causal attention through cuDNN's fused graphs, forward and backward.
#pragma once
#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

#include "modeling/op/attention/packed_attention.hpp"

namespace hexad::modeling::cuda {

// Whether packed attention is cuDNN's on this GPU: Hopper and Blackwell's data centre cards. Others run LibTorch's
// FlashAttention-2, and so does a build whose kernels are for older cards. Only in a build with CUDA.
bool has_cudnn_attention(at::Device device);

// Whether cuDNN takes tensors like these: Hopper or B200, bf16 or fp16, head widths that are multiples of 16 up to
// 256, unit stride in a head, heads and tokens that begin at multiples of 16 bytes. Not in ATen's deterministic mode:
// the backward pass adds in no fixed order, and its ordered variant needs memory for all scores. Always false in a
// build without CUDA.
bool fits_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

// q [T, Hq, D], k [T, Hkv, D], v [T, Hkv, Dv], each with its own strides (parts of one projection are read in place),
// -> [T, Hq, Dv], contiguous; window as in packed_attention. Differentiable; the gradient of q has the strides of q,
// those of k and v are contiguous. Nothing waits for the device; the first call of a shape builds its graph (0.1 to 3 s
// for both directions).
at::Tensor packed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const std::shared_ptr<const RaggedRows>& rows, int64_t window);

// AttentionKernel::batch_invariant: forward by our own kernel, backward by cuDNN, or by FlashAttention-2 where
// the card has no cuDNN attention. Throws Error for tensors that do not fit.
at::Tensor batch_invariant_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                     const PackedLayout& layout, int64_t window);

}  // namespace hexad::modeling::cuda
