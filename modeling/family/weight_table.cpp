#include "modeling/family/weight_table.hpp"

#include <ATen/Functions.h>

namespace hexad::modeling {

at::Tensor initial_weight(const ModelConfig& config, const WeightInfo& info, at::Generator generator) {
  if (info.hf_name.ends_with("norm.weight")) return at::ones(info.shape, at::kFloat);
  if (info.hf_name.ends_with("bias")) return at::zeros(info.shape, at::kFloat);
  return at::empty(info.shape, at::kFloat).normal_(0.0, config.initializer_range, std::move(generator));
}

}  // namespace hexad::modeling
