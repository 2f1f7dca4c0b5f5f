#include "core/config/schema/blocks.hpp"

namespace hexad::config {
namespace {

void add_importance_sampling(Schema& s) {
  s.add("loss_fn.use_importance_sampling_correction", kBool, "false",
        "weight tokens by exp(training - generation log-prob)");
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
  add_importance_sampling(s);
  s.add("loss_fn.force_on_policy_ratio", kBool, "false",
        "take the ratio as 1, and save the pass that computes the old log-probs");
  s.add("loss_fn.use_kl_in_reward", kBool, "false",
        "reinforce_plus_plus: the KL goes into the advantages, not the loss");
  add_other_losses(s);
}

}  // namespace hexad::config
