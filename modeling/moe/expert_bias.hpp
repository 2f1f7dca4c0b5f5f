// The bias that balances experts without a loss (DeepSeek-V3, arXiv 2412.19437; Megatron-Core's
// get_updated_expert_bias).
#pragma once
#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// bias + rate * sign(mean count - count), fp32 [..., E]. tokens_per_expert [..., E]: tokens of the whole global batch,
// summed over ranks.
at::Tensor updated_expert_bias(const at::Tensor& bias, const at::Tensor& tokens_per_expert, double rate);

}  // namespace hexad::modeling
