// The loss of GRPO, by the formulas of TRL's GRPOTrainer._compute_loss.
#include "compat/trl/pass.hpp"

namespace hexad::compat::trl {
namespace {

// TRL's CISPO bounds the ratio itself from above, and not at all from below.
void cispo(Pass& p, double high) {
  p.out.set("loss_fn.use_cispo", true);
  p.out.set("loss_fn.ratio_clip_min", 1.0, "no lower bound");
  p.out.set("loss_fn.ratio_clip_max", std::max(0.0, high - 1), "TRL's epsilon_high bounds the ratio itself: this + 1");
  if (high < 1)
    p.out.leave_out("epsilon_high", fmt::format("{} of cispo, where it is the largest ratio; the least here is 1, and "
                                                "5 is what its paper recommends",
                                                high));
}

void clip(Pass& p, double low, double high) {
  p.out.set("loss_fn.ratio_clip_min", low);
  p.out.set("loss_fn.ratio_clip_max", high);
  p.out.put("loss_fn.ratio_clip_c", p.args.value("delta"));
}

// The mean over tokens, or over sequences of their means.
bool token_level(Pass& p, const std::string& type) {
  if (type == "grpo") return false;
  const std::string notes[][2] = {
      {"bnpo", "TRL takes the mean over the tokens of a micro-batch, here it is over those of the optimizer step"},
      {"dr_grpo",
       "TRL divides by max_completion_length x sequences, here by the tokens of the optimizer step: the "
       "same for all tokens of a step too, and larger"}};
  for (const auto& [name, note] : notes) {
    if (type == name) p.out.leave_out("loss_type", name + ": " + note);
  }
  if (type != "dapo" && type != "bnpo" && type != "dr_grpo" && type != "cispo")
    p.out.leave_out("loss_type", fmt::format("'{}' is not available; written as dapo, a mean over tokens", type));
  return true;
}

void translate_kl(Pass& p) {
  const double beta = p.args.number("beta").value_or(0);
  p.out.set("loss_fn.reference_policy_kl_penalty", beta);
  if (beta == 0) return;
  p.out.set("loss_fn.reference_policy_kl_type", std::string("k3"));
  p.out.set("loss_fn.kl_input_clamp_value", {}, "TRL bounds it nowhere");
  p.out.set("loss_fn.kl_output_clamp_value", {});
  if (p.args.flag("use_bias_correction_kl"))
    p.out.leave_out("use_bias_correction_kl",
                    "loss_fn.use_on_policy_kl_approximation weights by exp(current - generation log-prob), TRL by the "
                    "ratio of the loss");
}

void translate_sequence_level(Pass& p, bool by_token) {
  const std::string level = p.args.text("importance_sampling_level").value_or("token");
  if (level == "token") return;
  if (level != "sequence") p.args.refuse("importance_sampling_level", "got '" + level + "', wanted token or sequence");
  p.out.set("loss_fn.sequence_level_importance_ratios", true, "GSPO");
  if (!by_token) return;
  p.out.set("loss_fn.token_level_loss", false, "sequence-level ratios want it");
  p.out.leave_out("loss_type", "a mean over tokens does not go with ratios of sequences; written as grpo, GSPO's own");
}

void translate_advantages(Pass& p) {
  const yaml::Node* scale = p.args.value("scale_rewards");
  const std::string how = !scale             ? "none"
                          : scale->is_bool() ? (scale->as_bool() ? "group" : "none")
                                             : p.args.text("scale_rewards").value_or("");
  if (how != "group" && how != "none" && how != "no" && how != "batch")
    p.args.refuse("scale_rewards", fmt::format("got '{}', wanted group, batch or none", how));
  p.out.set("grpo.normalize_rewards", how == "group");
  p.out.set("grpo.use_leave_one_out_baseline", false, "TRL subtracts the mean of the whole group");
  if (how == "batch")
    p.out.leave_out("scale_rewards", "batch: advantages are not divided by the deviation of a whole batch");
  if (p.args.flag("mask_truncated_completions")) {
    p.out.set("grpo.overlong_filtering", true);
    p.out.set("compat.filtered_samples_vote", true, "in TRL their rewards count in the mean of their group");
  }
  const std::string aggregation = p.args.text("multi_objective_aggregation").value_or("sum_then_normalize");
  if (aggregation != "sum_then_normalize")
    p.out.leave_out("multi_objective_aggregation",
                    "grpo.adv_estimator.name: gdpo is this, where an environment gives several rewards");
}

}  // namespace

void translate_loss(Pass& p) {
  const std::string type = p.args.text("loss_type").value_or("dapo");
  const double low = p.args.number("epsilon").value_or(0.2), high = p.args.number("epsilon_high").value_or(low);
  const bool by_token = token_level(p, type);
  p.out.set("loss_fn.token_level_loss", by_token, type == "grpo" ? "" : "loss_type " + type);
  const bool by_sequence = p.args.text("importance_sampling_level") == "sequence";
  if (type == "cispo" && !by_sequence) {
    cispo(p, high);
  } else {
    clip(p, low, high);
  }
  translate_sequence_level(p, by_token);
  translate_kl(p);
  translate_advantages(p);
}

}  // namespace hexad::compat::trl
