// Models and configurations for the megatron backend.
#pragma once
#include "tests/plugins/backend/harness.hpp"

namespace backend_test {

// Sizes that 2 and 4 ranks divide, key/value heads that 4 ranks replicate, a vocabulary that none divides.
inline json megatron_model(const std::string& family) {
  json model = tiny_config(family);
  model["num_hidden_layers"] = 4;
  model["num_attention_heads"] = 4;
  model["num_key_value_heads"] = 2;
  model["intermediate_size"] = 28;
  return model;
}

// `sizes`: keys of megatron_cfg.
inline json megatron_policy(const std::filesystem::path& model, const json& sizes,
                            const std::string& precision = "float32") {
  json result = policy(model, precision);
  result.erase("dtensor_cfg");
  result["megatron_cfg"] = sizes;
  return result;
}

}  // namespace backend_test
