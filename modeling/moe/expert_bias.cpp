#include "modeling/moe/expert_bias.hpp"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

namespace hexad::modeling {

at::Tensor updated_expert_bias(const at::Tensor& bias, const at::Tensor& tokens_per_expert, double rate) {
  const at::NoGradGuard no_grad;
  const at::Tensor counts = tokens_per_expert.to(at::kFloat);
  return bias + (counts.mean(-1, true) - counts).sign() * rate;
}

}  // namespace hexad::modeling
