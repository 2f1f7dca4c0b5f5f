// A model folder with experts in the second and third of its three layers: 8, of which a token goes to 2.
#pragma once
#include "tests/plugins/server_bridge/support/harness.hpp"

namespace bridge_test {

class MoeModelDir : public ModelDir {
 public:
  MoeModelDir() {
    std::ofstream(path() / "config.json") << Json{
        {"model_type", "qwen3_moe"},
        {"vocab_size", 97},
        {"hidden_size", 8},
        {"num_hidden_layers", 3},
        {"num_attention_heads", 2},
        {"num_key_value_heads", 1},
        {"head_dim", 4},
        {"intermediate_size", 16},
        {"moe_intermediate_size", 4},
        {"num_experts", 8},
        {"num_experts_per_tok", 2},
        {"mlp_only_layers", {0}},
        {"eos_token_id", 2}}.dump();
  }
};

}  // namespace bridge_test
