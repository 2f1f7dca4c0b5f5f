#include "core/config/rules/rules.hpp"

namespace hexad::config {
namespace {

void check_order(RuleContext& c, const std::string& low_key, const std::string& high_key, bool may_be_equal) {
  const std::optional<double> low = c.number(low_key), high = c.number(high_key);
  if (!low || !high || *low < *high || (may_be_equal && *low == *high)) return;
  c.error(low_key, fmt::format("got {}, wanted {} {}, which is {}", *low, may_be_equal ? "at most" : "less than",
                               high_key, *high));
}

void check_penalties(RuleContext& c) {
  const std::string at = "reward_penalties";
  const auto there = [&](const std::string& key) { return c.value(at + "." + key) != nullptr; };
  if (c.flag(at + ".penalize_unwanted_tokens") && !there("token_ids.unwanted"))
    c.error(at + ".penalize_unwanted_tokens",
            "needs reward_penalties.token_ids.unwanted: the tokens that are unwanted");
  if (there("token_ids.think_open") != there("token_ids.think_close"))
    c.error(at + ".token_ids", "think_open and think_close go together: one of them is missing");
  const yaml::Node* tags = c.value(at + ".thinking_tags");
  if (tags && tags->is_list() && tags->items().size() != 2)
    c.error(at + ".thinking_tags",
            fmt::format("got {} texts, wanted two: what opens reasoning, and what closes it", tags->items().size()));
}

// Whether advantages are relative to the other samples of a prompt.
bool has_baseline(const RuleContext& c) {
  return c.text("grpo.adv_estimator.name") != "reinforce_plus_plus" || c.flag("grpo.adv_estimator.minus_baseline");
}

// Where a run trains on other samples than NeMo-RL does.
void tell_differences(RuleContext& c) {
  if (c.flag("grpo.use_dynamic_sampling") && c.flag("grpo.use_leave_one_out_baseline") &&
      !c.flag("compat.dynamic_sampling_by_sample"))
    c.notice("grpo.use_dynamic_sampling",
             "keeps every group whose rewards differ whole; NeMo-RL drops the one sample whose reward differs from its "
             "siblings' (compat.dynamic_sampling_by_sample: true)");
  for (const char* filter : {"grpo.overlong_filtering", "grpo.seq_logprob_error_threshold"}) {
    if (!has_baseline(c) || !(c.flag(filter) || c.number(filter)) || c.flag("compat.filtered_samples_vote")) continue;
    c.notice(filter,
             "what it leaves out of the loss does not count in its group's baseline either; in NeMo-RL it does "
             "(compat.filtered_samples_vote: true)");
  }
}

}  // namespace

void check_eval_rules(RuleContext& c) {
  const int64_t tests = c.integer("eval.num_tests_per_prompt").value_or(1), k = c.integer("eval.k_value").value_or(1);
  if (k > tests)
    c.error("eval.k_value", fmt::format("got {}, wanted at most eval.num_tests_per_prompt, which is {}", k, tests));
  const bool greedy = c.number("policy.generation.temperature").value_or(1) == 0 ||
                      c.integer("policy.generation.top_k").value_or(0) == 1;
  if (c.root().child("eval") && tests > 1 && greedy)
    c.error("eval.num_tests_per_prompt",
            fmt::format("got {}, and with temperature 0 or top_k 1 all samples of a prompt are the same; nearest: 1",
                        tests));
}

void check_grpo_rules(RuleContext& c) {
  if (c.number("policy.generation.temperature") == 0.0)
    c.error("policy.generation.temperature",
            "got 0, wanted above 0: training divides logits by it, and samples that are all the same teach nothing");
  if (c.integer("policy.generation.top_k") == 1)
    c.error("policy.generation.top_k",
            "got 1, wanted above 1 or null: of one token that is left the log-prob is 0 in training, and has no "
            "gradient");
  check_penalties(c);
  tell_differences(c);
  const bool by_part = c.text("grpo.adv_estimator.name") == "gdpo";
  if (!by_part && c.value("grpo.adv_estimator.reward_weights"))
    c.notice("grpo.adv_estimator.reward_weights", "no effect: gdpo alone reads it; env.NAME.rewards weighs a sum");
  if (by_part && c.flag("grpo.reward_shaping.enabled"))
    c.notice("grpo.reward_shaping.enabled", "no effect on advantages: gdpo takes the parts of rewards, unshaped");
  if (c.text("grpo.stop_at_validation_metric") && !c.number("grpo.stop_at_validation_threshold"))
    c.error("grpo.stop_at_validation_metric", "needs grpo.stop_at_validation_threshold");
  check_order(c, "grpo.advantage_clip_low", "grpo.advantage_clip_high", true);
  if (c.flag("grpo.reward_scaling.enabled"))
    check_order(c, "grpo.reward_scaling.source_min", "grpo.reward_scaling.source_max", false);
  if (c.integer("grpo.num_generations_per_prompt") == 1 && has_baseline(c))
    c.notice("grpo.num_generations_per_prompt",
             "got 1: a sample alone in its group is its own baseline, so that its reward gives no advantage");
  if (!c.flag("grpo.use_dynamic_sampling") && c.number("grpo.batch_multiplier").value_or(1) != 1)
    c.error("grpo.batch_multiplier",
            "needs grpo.use_dynamic_sampling: a step trains on grpo.num_prompts_per_step prompts");
  if (c.flag("grpo.use_dynamic_sampling") && c.flag("grpo.async_grpo.enabled"))
    c.error("grpo.use_dynamic_sampling",
            "does not go with grpo.async_grpo: its groups belong to a step before their rewards are known");
  if (c.flag("grpo.use_dynamic_sampling") && c.integer("grpo.num_generations_per_prompt") == 1)
    c.error("grpo.use_dynamic_sampling", "needs grpo.num_generations_per_prompt above 1: one reward never varies");
  if (c.integer("grpo.max_rollout_turns").value_or(1) > 1 && c.value("policy.generation.imposed_lengths"))
    c.error("grpo.max_rollout_turns",
            "above 1 does not go with policy.generation.imposed_lengths, which are of one response a sample");
  const bool no_reference = c.number("loss_fn.reference_policy_kl_penalty").value_or(0) == 0;
  if (c.flag("grpo.skip_reference_policy_logprobs_calculation") && !no_reference)
    c.error("grpo.skip_reference_policy_logprobs_calculation",
            "needs loss_fn.reference_policy_kl_penalty: 0, for the KL is taken from the reference policy");
}

}  // namespace hexad::config
