// A model for tensor-parallel layouts.
#pragma once
#include "tests/plugins/backend/tiny_model.hpp"

namespace backend_test {

// Sizes that 2 and 4 ranks divide, key/value heads that 4 ranks replicate, a vocabulary that none divides.
inline nlohmann::json divisible_model(const std::string& family) {
  nlohmann::json model = tiny_config(family);
  model["num_hidden_layers"] = 4;
  model["num_attention_heads"] = 4;
  model["num_key_value_heads"] = 2;
  model["intermediate_size"] = 28;
  return model;
}

}  // namespace backend_test
