// Advantages and the loss, by the formulas of verl/trainer/ppo/core_algos.py.
#include "compat/verl/pass.hpp"

namespace hexad::compat::verl {
namespace {

// k1, k2 or k3; nothing for others. A `+` behind verl's name changes its gradient alone, and not to ours.
std::optional<std::string> kl_type(const std::string& name) {
  if (name == "kl" || name == "k1") return "k1";
  if (name == "mse" || name == "k2") return "k2";
  if (name == "low_var_kl" || name == "k3") return "k3";
  return std::nullopt;
}

void set_kl_type(Pass& p, const std::string& key) {
  const std::string name = p.file.text(key).value_or("low_var_kl");
  const std::optional<std::string> type = kl_type(name);
  p.out.set("loss_fn.reference_policy_kl_type", type.value_or("k3"));
  if (!type) p.out.leave_out(key, fmt::format("'{}' is not available; written as k3", name));
  if (type == "k3") return;  // verl bounds this one by 20 and 10, as the defaults here
  p.out.set("loss_fn.kl_input_clamp_value", {}, "verl bounds low_var_kl alone");
  p.out.set("loss_fn.kl_output_clamp_value", {});
}

struct Estimator {
  const char* name;  // verl's
  const char* ours;  // grpo.adv_estimator.name
  bool leave_one_out, by_std, minus_baseline;
};

constexpr Estimator kEstimators[] = {{"grpo", "grpo", false, true, false},
                                     {"grpo_vectorized", "grpo", false, true, false},
                                     {"rloo", "grpo", true, false, false},
                                     {"rloo_vectorized", "grpo", true, false, false},
                                     {"reinforce_plus_plus", "reinforce_plus_plus", false, false, false},
                                     {"reinforce_plus_plus_baseline", "reinforce_plus_plus", false, false, true}};

const Estimator& estimator_of(Pass& p) {
  const std::string name = p.file.text("algorithm.adv_estimator").value_or("gae");
  for (const Estimator& each : kEstimators) {
    if (name == each.name) return each;
  }
  p.out.leave_out("algorithm.adv_estimator",
                  fmt::format("'{}'{}; written as grpo. There are grpo, rloo, reinforce_plus_plus and "
                              "reinforce_plus_plus_baseline",
                              name, name == "gae" ? " needs a critic, which is not available" : " is not available"));
  return kEstimators[0];
}

bool translate_kl_in_reward(Pass& p, bool reinforce) {
  const std::string key = "algorithm.use_kl_in_reward";
  if (!p.file.flag(key)) return false;
  if (!reinforce) {
    p.out.leave_out(key,
                    "the KL is taken off rewards with reinforce_plus_plus alone; loss_fn."
                    "reference_policy_kl_penalty has it in the loss");
    return false;
  }
  p.out.set("loss_fn.use_kl_in_reward", true);
  p.out.set("loss_fn.reference_policy_kl_penalty", p.file.number("algorithm.kl_ctrl.kl_coef").value_or(0),
            "algorithm.kl_ctrl.kl_coef");
  set_kl_type(p, "algorithm.kl_penalty");
  if (p.file.text("algorithm.kl_ctrl.type").value_or("fixed") != "fixed")
    p.out.leave_out("algorithm.kl_ctrl.type", "the coefficient stays as it is here");
  return true;
}

void translate_kl_loss(Pass& p, bool in_reward) {
  const std::string key = kActor + "use_kl_loss";
  if (in_reward && p.file.flag(key)) p.out.leave_out(key, "the KL is in the rewards already, and cannot be in both");
  if (in_reward) return;
  const double weight = p.file.flag(key) ? p.file.number(kActor + "kl_loss_coef").value_or(0) : 0;
  p.out.set("loss_fn.reference_policy_kl_penalty", weight, weight == 0 ? "no KL loss: no reference policy" : "");
  if (weight != 0) set_kl_type(p, kActor + "kl_loss_type");
}

void translate_clip(Pass& p) {
  const std::optional<double> all = p.file.number(kActor + "clip_ratio");
  const double low = p.file.number(kActor + "clip_ratio_low").value_or(all.value_or(0.2));
  const double high = p.file.number(kActor + "clip_ratio_high").value_or(all.value_or(0.2));
  p.out.set("loss_fn.ratio_clip_min", low);
  p.out.set("loss_fn.ratio_clip_max", high);
  if (all && p.file.given(kActor + "clip_ratio") && (*all != low || *all != high))
    p.out.leave_out(kActor + "clip_ratio", fmt::format("{:g} has no effect in verl either, where clip_ratio_low {:g} "
                                                       "and clip_ratio_high {:g} stand",
                                                       *all, low, high));
}

// Which objective; true where ratios are those of sequences.
bool translate_objective(Pass& p) {
  const std::string key = kActor + "policy_loss.loss_mode", mode = p.file.text(key).value_or("vanilla");
  translate_clip(p);
  if (mode == "vanilla") {
    p.out.put("loss_fn.ratio_clip_c", p.file.value(kActor + "clip_ratio_c"));
  } else if (mode == "gspo") {
    p.out.set("loss_fn.sequence_level_importance_ratios", true, "GSPO");
  } else if (mode == "cispo") {
    p.out.set("loss_fn.use_cispo", true);
  } else if (mode == "gpg") {
    p.out.set("loss_fn.disable_ppo_ratio", true, "gpg: no ratio");
  } else {
    p.out.leave_out(key, fmt::format("'{}' is not available; written as vanilla", mode));
  }
  p.file.value(kActor + "clip_ratio_c");
  return mode == "gspo";
}

void translate_aggregation(Pass& p, bool by_sequence) {
  const std::string key = kActor + "loss_agg_mode", mode = p.file.text(key).value_or("token-mean");
  const bool by_token = mode != "seq-mean-token-mean";
  p.out.set("loss_fn.token_level_loss", by_token && !by_sequence, mode);
  if (by_token && by_sequence)
    p.out.leave_out(key,
                    fmt::format("'{}' does not go with ratios of sequences; written as seq-mean-token-mean", mode));
  else if (by_token && mode != "token-mean")
    p.out.leave_out(key, fmt::format("'{}': sums of tokens are not divided by sequences or a constant; written as "
                                     "token-mean",
                                     mode));
}

void translate_correction(Pass& p) {
  const std::string at = "algorithm.rollout_correction.";
  const std::optional<std::string> level = p.file.text(at + "rollout_is");
  if (!level || *level == "no") return;
  if (*level != "token") return p.out.leave_out(at + "rollout_is", *level + ": weights are by token here");
  p.out.set("loss_fn.use_importance_sampling_correction", true, "rollout_correction.rollout_is");
  p.out.set("loss_fn.truncated_importance_sampling_type", std::string("tis"));
  p.out.put("loss_fn.truncated_importance_sampling_ratio", p.file.value(at + "rollout_is_threshold"));
}

}  // namespace

void translate_advantages(Pass& p) {
  const Estimator& estimator = estimator_of(p);
  const bool reinforce = estimator.ours == std::string("reinforce_plus_plus");
  p.out.set("grpo.adv_estimator.name", std::string(estimator.ours));
  if (reinforce) {
    p.out.set("grpo.adv_estimator.minus_baseline", estimator.minus_baseline);
    if (p.file.number("algorithm.gamma").value_or(1) != 1)
      p.out.leave_out("algorithm.gamma", "tokens are not discounted");
  } else {
    const bool by_std = p.file.flag("algorithm.norm_adv_by_std_in_grpo");
    p.out.set("grpo.normalize_rewards", estimator.by_std && by_std);
    p.out.set("grpo.use_leave_one_out_baseline", estimator.leave_one_out);
  }
  const bool in_reward = translate_kl_in_reward(p, reinforce);
  for (const char* of_critic : {"algorithm.lam", "algorithm.gamma", "algorithm.kl_penalty"}) p.file.value(of_critic);
  translate_kl_loss(p, in_reward);
}

void translate_loss(Pass& p) {
  const bool by_sequence = translate_objective(p);
  translate_aggregation(p, by_sequence);
  translate_correction(p);
  if (p.file.number(kActor + "entropy_coeff").value_or(0) != 0)
    p.out.leave_out(kActor + "entropy_coeff", "losses of entropy are not available");
}

}  // namespace hexad::compat::verl
