// A model with experts whose products fit FP8.
#pragma once
#include "tests/plugins/megatron/expert_model.hpp"

namespace backend_test {

inline json fp8_expert_model() {
  json model = expert_model("qwen3_moe");
  model.update({{"hidden_size", 64},
                {"num_attention_heads", 4},
                {"num_key_value_heads", 2},
                {"head_dim", 16},
                {"moe_intermediate_size", 32}});
  return model;
}

}  // namespace backend_test
