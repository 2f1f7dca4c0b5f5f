// A model whose config.json is all that is read of it, and what was recorded from NeMo-RL.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/plugins/vllm_bridge/support/harness.hpp"

namespace vllm_test {

inline Json tiny_llama() {
  return {{"model_type", "llama"},
          {"hidden_size", 256},
          {"intermediate_size", 384},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 64},
          {"vocab_size", 97},
          {"max_position_embeddings", 4096},
          {"rms_norm_eps", 1e-6},
          {"rope_theta", 10000.0},
          {"tie_word_embeddings", false},
          {"torch_dtype", "bfloat16"},
          {"hidden_act", "silu"},
          {"eos_token_id", 2},
          {"attention_bias", false},
          {"norm_topk_prob", true}};
}

class Fp8Model {
 public:
  explicit Fp8Model(const Json& config) { std::ofstream(dir_.path() / "config.json") << config.dump(); }
  std::string path() const { return dir_.path().string(); }

 private:
  ModelDir dir_;
};

inline Json nemo_rl_golden() {
  std::ifstream file(std::string(std::getenv("HEXAD_SOURCE_DIR")) +
                     "/tests/plugins/vllm_bridge/fp8/data/nemo_rl_fp8.json");
  return Json::parse(file);
}

}  // namespace vllm_test
