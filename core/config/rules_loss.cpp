#include "core/config/rules.hpp"

namespace hexad::config {
namespace {

void check_truncation(RuleContext& c) {
  const std::optional<std::string> type = c.text("loss_fn.truncated_importance_sampling_type");
  if (!type) return;
  const std::string key = "loss_fn.truncated_importance_sampling_type";
  const std::optional<double> high = c.number("loss_fn.truncated_importance_sampling_ratio");
  const std::optional<double> low = c.number("loss_fn.truncated_importance_sampling_ratio_min");
  if (!c.flag("loss_fn.use_importance_sampling_correction")) {
    c.error(key, fmt::format("'{}' needs loss_fn.use_importance_sampling_correction: true", *type));
  }
  if (!high) c.error(key, fmt::format("'{}' needs loss_fn.truncated_importance_sampling_ratio, above 0", *type));
  if (high && low && *low > *high) {
    c.error("loss_fn.truncated_importance_sampling_ratio_min",
            fmt::format("got {}, wanted at most truncated_importance_sampling_ratio, which is {}", *low, *high));
  }
  if (*type != "tis" && !low) {
    c.error(key, fmt::format("'{}' needs loss_fn.truncated_importance_sampling_ratio_min", *type));
  }
  if (*type == "seq-mask-tis" && c.flag("loss_fn.sequence_level_importance_ratios")) {
    c.error(key, "'seq-mask-tis' does not go with loss_fn.sequence_level_importance_ratios: true");
  }
}

void check_cispo(RuleContext& c) {
  const std::string key = "loss_fn.use_cispo";
  if (!c.flag(key)) return;
  for (const char* other : {"disable_ppo_ratio", "force_on_policy_ratio", "sequence_level_importance_ratios"}) {
    if (c.flag(std::string("loss_fn.") + other)) c.error(key, fmt::format("does not go with loss_fn.{}: true", other));
  }
  if (c.number("loss_fn.ratio_clip_c")) c.error(key, "does not go with a dual clip; set loss_fn.ratio_clip_c: null");
  if (!c.flag("loss_fn.token_level_loss")) c.error(key, "needs loss_fn.token_level_loss: true");
}

// Samples in FP8 are further from the policy than rounding explains; NeMo-RL asks for the same of vLLM's.
void check_fp8_rollouts(RuleContext& c) {
  if (c.text("policy.generation.backend").value_or("native") != "native") return;
  if (c.flag("loss_fn.use_importance_sampling_correction")) return;
  for (const auto& [name, nearest] : {std::pair{"precision", "bfloat16"}, {"kv_cache_dtype", "auto"}}) {
    const std::string key = std::string("policy.generation.native_cfg.") + name, value = c.text(key).value_or("");
    if (!value.starts_with("fp8")) continue;
    c.error(key,
            fmt::format("'{}' needs loss_fn.use_importance_sampling_correction: true; nearest: {}", value, nearest));
  }
}

}  // namespace

void check_loss_rules(RuleContext& c) {
  if (c.text("loss_fn.plugin").value_or("clipped_pg") != "clipped_pg") return;
  if (c.flag("loss_fn.sequence_level_importance_ratios") && c.flag("loss_fn.token_level_loss")) {
    c.error("loss_fn.sequence_level_importance_ratios", "needs loss_fn.token_level_loss: false");
  }
  check_cispo(c);
  check_fp8_rollouts(c);
  check_truncation(c);
  if (c.flag("loss_fn.use_kl_in_reward") && c.text("grpo.adv_estimator.name") != "reinforce_plus_plus") {
    c.notice("loss_fn.use_kl_in_reward",
             "only grpo.adv_estimator.name: reinforce_plus_plus puts the KL into rewards; here it is left out of both");
  }
}

}  // namespace hexad::config
