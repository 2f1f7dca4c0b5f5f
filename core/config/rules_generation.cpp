#include "core/config/rules.hpp"

namespace hexad::config {
namespace {

// Only NeMo-Gym samples otherwise in validation than in training.
void check_validation_sampling(RuleContext& c, const std::string& name, double otherwise) {
  const std::string key = "policy.generation." + name, val_key = "policy.generation.val_" + name;
  if (!c.root().has(val_key)) return;
  const double train = c.number(key).value_or(otherwise);
  const double val = c.number(val_key).value_or(otherwise);
  if (train == val) return;
  c.error(val_key, fmt::format("got {}, wanted that of training, {} is {}; sampling of its own in validation needs "
                               "NeMo-Gym, which is not available in this version",
                               val, key, train));
}

}  // namespace

void check_generation_rules(RuleContext& c) {
  check_validation_sampling(c, "temperature", 1);
  check_validation_sampling(c, "top_p", 1);
  check_validation_sampling(c, "top_k", -1);
  const std::optional<int64_t> longest = c.integer("policy.max_total_sequence_length");
  if (c.text("policy.generation.backend").value_or("native") == "native") {
    const std::string key = "policy.generation.native_cfg.max_num_batched_tokens";
    const std::optional<int64_t> tokens = c.integer(key);
    if (!c.flag("policy.generation.native_cfg.enable_chunked_prefill") && tokens && longest && *tokens < *longest) {
      c.error(key, fmt::format("got {}, wanted at least policy.max_total_sequence_length ({}) without "
                               "policy.generation.native_cfg.enable_chunked_prefill",
                               *tokens, *longest));
    }
  }
}

}  // namespace hexad::config
