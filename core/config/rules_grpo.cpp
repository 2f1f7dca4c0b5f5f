#include "core/config/rules.hpp"

namespace hexad::config {
namespace {

void check_order(RuleContext& c, const std::string& low_key, const std::string& high_key, bool may_be_equal) {
  const std::optional<double> low = c.number(low_key), high = c.number(high_key);
  if (!low || !high || *low < *high || (may_be_equal && *low == *high)) return;
  c.error(low_key, fmt::format("got {}, wanted {} {}, which is {}", *low, may_be_equal ? "at most" : "less than",
                               high_key, *high));
}

}  // namespace

void check_grpo_rules(RuleContext& c) {
  if (c.text("grpo.stop_at_validation_metric") && !c.number("grpo.stop_at_validation_threshold")) {
    c.error("grpo.stop_at_validation_metric", "needs grpo.stop_at_validation_threshold");
  }
  check_order(c, "grpo.advantage_clip_low", "grpo.advantage_clip_high", true);
  if (c.flag("grpo.reward_scaling.enabled")) {
    check_order(c, "grpo.reward_scaling.source_min", "grpo.reward_scaling.source_max", false);
  }
  if (c.integer("grpo.num_generations_per_prompt") == 1 && c.text("grpo.adv_estimator.name") == "grpo") {
    c.notice("grpo.num_generations_per_prompt", "got 1: a sample alone in its group always has the advantage 0");
  }
  const bool no_reference = c.number("loss_fn.reference_policy_kl_penalty").value_or(0) == 0;
  if (c.flag("grpo.skip_reference_policy_logprobs_calculation") && !no_reference) {
    c.error("grpo.skip_reference_policy_logprobs_calculation",
            "needs loss_fn.reference_policy_kl_penalty: 0, for the KL is taken from the reference policy");
  }
}

}  // namespace hexad::config
