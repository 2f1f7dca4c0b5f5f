// The weights of a model, which lib/model/family lists for whoever has no LibTorch too, and fresh values of them.
#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "lib/model/family/weight_table.hpp"
#include "modeling/family/model_config.hpp"

namespace hexad::modeling {

using model::expert_of;
using model::head_weight_name;
using model::is_router;
using model::kEmbeddingName;
using model::kFinalNormName;
using model::kScoreName;
using model::weight_table;
using model::weight_units;
using model::WeightInfo;

// A fresh fp32 CPU tensor for training from scratch: norms 1, biases (of routers too) 0, matrices normal(0,
// initializer_range).
at::Tensor initial_weight(const ModelConfig& config, const WeightInfo& info, at::Generator generator);

}  // namespace hexad::modeling
