// Configurations of the megatron backend over models of which there is only a config.json.
#pragma once
#include "tests/config/support.hpp"

namespace config_test {

inline const std::string kDense =
    R"({"model_type": "qwen3", "vocab_size": 64, "hidden_size": 64, "num_attention_heads": 8,
        "num_key_value_heads": 4, "num_hidden_layers": 8, "intermediate_size": 96})";
inline const std::string kExperts =
    R"({"model_type": "qwen3_moe", "vocab_size": 64, "hidden_size": 64, "num_attention_heads": 8,
        "num_key_value_heads": 4, "num_hidden_layers": 8, "intermediate_size": 96, "moe_intermediate_size": 48,
        "num_experts": 12, "num_experts_per_tok": 2})";

// Overrides of policy.megatron_cfg are written without it: "tensor_model_parallel_size=2"; others begin with '/'.
class MegatronFiles {
 public:
  explicit MegatronFiles(const std::string& model)
      : files_(std::vector<std::pair<std::string, std::string>>{{"model/config.json", model}, {"a.yaml", ""}}) {
    std::ofstream(files_ / "a.yaml") << "policy:\n  model_name: " << (files_ / "model").string()
                                     << "\n  megatron_cfg: {enabled: true}\n"
                                        "data: {train: {dataset_name: arithmetic}}\n"
                                        "grpo: {num_prompts_per_step: 32}\n"
                                        "cluster: {gpus_per_node: 8}\n";
  }

  hexad::config::Resolved resolve(const Overrides& overrides) const {
    return hexad::config::resolve(files_ / "a.yaml", full(overrides));
  }
  std::string error(const Overrides& overrides) const {
    return message_of([&] { resolve(overrides); });
  }

 private:
  static Overrides full(const Overrides& overrides) {
    Overrides result;
    for (const std::string& text : overrides) {
      result.push_back(text.starts_with('/') ? "++" + text.substr(1) : "++policy.megatron_cfg." + text);
    }
    return result;
  }

  Files files_;
};

// What is refused with which message, and the nearest layout that is not.
struct RuleCase {
  Overrides refused;
  std::string message;
  Overrides valid;
};

inline void check_rules(const std::string& model, const std::vector<RuleCase>& cases) {
  const MegatronFiles files(model);
  for (const RuleCase& rule : cases) {
    CAPTURE(rule.refused.front());
    check_says(files.error(rule.refused), rule.message);
    CHECK(files.error(rule.valid) == "");
  }
}

// The keys of a notice that the configuration gets, with its words.
inline bool megatron_notice(const std::string& model, const Overrides& overrides, const std::string& key,
                            const std::string& words) {
  return has_notice(MegatronFiles(model).resolve(overrides), "policy.megatron_cfg." + key, words);
}

}  // namespace config_test
