// Models with experts that 2 and 4 ranks divide.
#pragma once
#include "tests/plugins/megatron/megatron_policy.hpp"

namespace backend_test {

inline json expert_model(const std::string& family) {
  if (family == "deepseek_v3") {
    json model = tiny_config(family);
    model.update({{"num_hidden_layers", 4},
                  {"num_attention_heads", 4},
                  {"intermediate_size", 28},
                  {"moe_intermediate_size", 8}});
    return model;
  }
  json model = megatron_model(family == "mixtral" ? "llama" : "qwen3_moe");
  model["model_type"] = family;
  if (family == "mixtral") {
    model.update({{"architectures", {"MixtralForCausalLM"}}, {"num_local_experts", 4}, {"num_experts_per_tok", 2}});
    return model;
  }
  model.update({{"num_experts", 4}, {"moe_intermediate_size", 8}});
  if (family == "qwen2_moe")
    model.update({{"architectures", {"Qwen2MoeForCausalLM"}}, {"shared_expert_intermediate_size", 12}});
  return model;
}

inline bool has_experts(const std::string& family) {
  return family == "mixtral" || family == "deepseek_v3" || family.ends_with("_moe");
}

// One whose products fit FP8.
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
