// Packed attention whose forward pass is not LibTorch's, with the backward pass of its FlashAttention-2: for cards on
// which cuDNN does not run (cudnn_attention.hpp).
#pragma once
#include <functional>

#include <ATen/core/Tensor.h>

#include "modeling/op/attention/packed_attention.hpp"

namespace hexad::modeling::cuda {

// Writes the result [T, Hq, Dv] and the natural logarithms of the sums of exponentials, fp32 [T, Hq].
using OwnForward = std::function<void(const at::Tensor& out, const at::Tensor& log_sums)>;

// bf16 or fp16; heads of one width, a multiple of 8 up to 256. No window. Differentiable; the backward pass adds in no
// fixed order.
at::Tensor with_flash_backward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const PackedLayout& layout, const OwnForward& forward);

}  // namespace hexad::modeling::cuda
