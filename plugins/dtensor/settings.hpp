// What the `policy` section says to this backend.
#pragma once
#include <ATen/core/Tensor.h>
#include <hexad/services.hpp>

#include <filesystem>
#include <optional>

#include "modeling/family/model_config.hpp"
#include "modeling/parallel/optimizer.hpp"

namespace hexad::dtensor {

struct Settings {
  std::filesystem::path model_dir;  // model_name: a Hugging Face directory
  modeling::ModelConfig model;      // its config.json with hf_config_overrides merged in
  at::ScalarType compute_dtype = at::kBFloat16;
  modeling::OptimizerOptions optimizer;
  bool cpu_offload = false;  // shards, gradients and optimizer state stay on the host
  bool activation_checkpointing = false;
  bool reshard_after_forward = true;
  std::optional<int64_t> random_init_seed;  // makes the weights when model_dir has none
  int64_t logprob_chunk_tokens = 0;         // logprob_chunk_size; 0: the head's own choice
};

// Throws sdk::Error or modeling::Error: features that are not available, wrong values, an unreadable config.json.
Settings read_settings(const sdk::Config& config);

}  // namespace hexad::dtensor
