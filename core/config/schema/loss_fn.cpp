#include "core/config/schema/blocks.hpp"

namespace hexad::config {
namespace {

void add_importance_sampling(Schema& s) {
  s.add("loss_fn.use_importance_sampling_correction", kBool, "false",
        "weight tokens by exp(training - generation log-prob)");
  s.add("loss_fn.truncated_importance_sampling_type", kText | kNull, "null", "how those weights are bounded")
      .one_of({"tis", "icepop", "seq-mask-tis"});
  s.add("loss_fn.truncated_importance_sampling_ratio", kFloat | kNull, "null", "upper bound of the weights").above(0);
  s.add("loss_fn.truncated_importance_sampling_ratio_min", kFloat | kNull, "null",
        "lower bound of the weights (tis: 0 if not set)")
      .at_least(0);
}

// Keys of NeMo-RL's other losses, which its distillation reads.
void add_other_losses(Schema& s) {
  for (const char* key :
       {"kl_type", "mixed_kl_weight", "zero_outside_topk", "temperature", "vocab_topk", "uncommon_topk", "gold_loss",
        "xtoken_loss", "exact_token_match_only", "reverse_kl", "kd_loss_mode", "dynamic_loss_scaling", "ce_loss_scale",
        "kl_loss_weight", "alpha", "normalize_teacher_by_vocab", "sum_weights_metric"}) {
    s.add(std::string("loss_fn.") + key, kAny, "", "of the distillation losses")
        .accepted("distillation is not available; only a loss plugin of one's own may read it");
  }
}

}  // namespace

void add_loss_fn(Schema& s) {
  s.section("loss_fn", "the loss");
  s.add("loss_fn.plugin", kText, "clipped_pg",
        "name or path of the loss plugin; of sft, dpo and rm the default is nll, dpo and preference");
  s.add("loss_fn.plugin_config", kMap | kNull, "{}", "keys of the loss plugin's own").open();
  s.add("loss_fn.reference_policy_kl_penalty", kFloat, "0.01",
        "weight of the KL divergence from the reference policy; 0: no reference policy is kept")
      .at_least(0);
  s.add("loss_fn.reference_policy_kl_type", kText, "k3", "estimator of that divergence").one_of({"k1", "k2", "k3"});
  s.add("loss_fn.kl_input_clamp_value", kFloat | kNull, "20.0", "bound of the log-ratio inside it; null: none")
      .above(0);
  s.add("loss_fn.kl_output_clamp_value", kFloat | kNull, "10.0", "bound of its value; null: none").above(0);
  s.add("loss_fn.ratio_clip_min", kFloat, "0.2", "the policy ratio is clipped below 1 - this").at_least(0);
  s.add("loss_fn.ratio_clip_max", kFloat, "0.2", "the policy ratio is clipped above 1 + this").at_least(0);
  s.add("loss_fn.ratio_clip_c", kFloat | kNull, "null", "dual clip: bound for negative advantages").above(1);
  s.add("loss_fn.use_on_policy_kl_approximation", kBool, "false",
        "weight the KL by exp(current - generation log-prob) instead of 1 with a score-function gradient");
  add_importance_sampling(s);
  s.add("loss_fn.sequence_level_importance_ratios", kBool, "false", "GSPO: one ratio for a whole sequence");
  s.add("loss_fn.token_level_loss", kBool, "true", "mean over all tokens; false: mean over sequences of their means");
  s.add("loss_fn.force_on_policy_ratio", kBool, "false",
        "take the ratio as 1, and save the pass that computes the old log-probs");
  s.add("loss_fn.use_kl_in_reward", kBool, "false",
        "reinforce_plus_plus: the KL goes into the advantages, not the loss");
  s.add("loss_fn.use_cispo", kBool, "false", "the CISPO objective");
  s.add("loss_fn.disable_ppo_ratio", kBool, "false", "the REINFORCE objective: no ratio");
  s.add("loss_fn.positive_example_nll_weight", kFloat, "0.0",
        "weight of a likelihood term on samples with a positive reward (VAPO)")
      .at_least(0);
  add_other_losses(s);
}

}  // namespace hexad::config
