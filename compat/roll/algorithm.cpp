// Advantages, loss and masks.
#include "compat/roll/pass.hpp"

namespace hexad::config::roll {
namespace {

// What ROLL does to rewards before they become advantages.
struct Normalisation {
  std::string mean, deviation;  // "", "group" or "batch"
  bool whiten = false;
};

Normalisation normalisation(Pass& p) {
  Normalisation n{p.file.text("norm_mean_type").value_or(""), p.file.text("norm_std_type").value_or(""),
                  p.file.flag("whiten_advantages")};
  if (p.file.text("adv_estimator") == "grpo") n.mean = n.deviation = "group";
  return n;
}

// The same advantages under the names here, or the reason why there are none.
void set_estimator(Pass& p, const Normalisation& n) {
  const char* const key = "adv_estimator";
  const auto set = [&](const char* name, std::initializer_list<std::pair<const char*, bool>> flags) {
    p.set("grpo.adv_estimator.name", std::string(name), key);
    for (const auto& [flag, value] : flags) p.set(std::string("grpo.adv_estimator.") + flag, value, key);
  };
  if (!n.whiten && n.mean == "group" && n.deviation != "batch") {
    // The mean over the group, the sample itself among it.
    return set("grpo", {{"normalize_rewards", n.deviation == "group"}, {"use_leave_one_out_baseline", false}});
  }
  // Whitening undoes a shift and a scale that all samples share.
  if (n.whiten && n.deviation != "group") return set("reinforce_plus_plus", {{"minus_baseline", n.mean == "group"}});
  if (n.whiten) {
    return p.file.missing("whiten_advantages", "whitening of advantages that the group's deviation has normalised",
                          "; nearest: whiten_advantages: false, or adv_estimator: reinforce with norm_mean_type: group "
                          "and no norm_std_type");
  }
  const char* const wrong = n.mean.empty() || n.mean == "batch" ? "norm_mean_type" : "norm_std_type";
  p.file.missing(wrong,
                 fmt::format("normalisation by the mean over {} and the deviation over {} without whiten_advantages",
                             n.mean.empty() ? "nothing" : n.mean, n.deviation.empty() ? "nothing" : n.deviation),
                 "; nearest: norm_mean_type: group and norm_std_type: group, or whiten_advantages: true");
}

void set_clips(Pass& p, const Normalisation& n) {
  const std::optional<double> reward = p.file.number("reward_clip"), advantage = p.file.number("advantage_clip");
  const bool raw = n.mean.empty() && n.deviation.empty();
  if (reward && raw) {
    const char* const at = "grpo.reward_scaling.";
    p.set(std::string(at) + "enabled", true, "reward_clip");
    for (const char* range : {"source", "target"}) {
      p.set(fmt::format("{}{}_min", at, range), -*reward, "reward_clip");
      p.set(fmt::format("{}{}_max", at, range), *reward, "reward_clip");
    }
  } else if (reward && n.whiten) {
    p.file.notice("reward_clip", "not applied: rewards are whitened right after their normalisation");
  }
  // Without whitening an advantage is the normalised reward, so that both bounds are of the same number.
  std::optional<double> bound = advantage;
  const char* from = "advantage_clip";
  if (reward && !raw && !n.whiten && (!bound || *reward < *bound)) bound = reward, from = "reward_clip";
  if (!bound) return;
  p.set("grpo.advantage_clip_low", -*bound, from);
  p.set("grpo.advantage_clip_high", *bound, from);
}

void set_ratio_clips(Pass& p) {
  const bool two_sided = p.file.flag("use_pg_clip_range");
  const char *low = two_sided ? "pg_clip_low" : "pg_clip", *high = two_sided ? "pg_clip_high" : "pg_clip";
  p.move(low, "loss_fn.ratio_clip_min");
  p.move(high, "loss_fn.ratio_clip_max");
  if (p.file.flag("dual_clip_loss")) {
    p.set("loss_fn.ratio_clip_c", 1 + 2 * p.file.number("pg_clip").value_or(0.2), "dual_clip_loss");
  }
}

void set_kl(Pass& p) {
  const bool used = p.file.flag("use_kl_loss");
  p.set("loss_fn.reference_policy_kl_penalty", used ? p.file.number("kl_loss_coef").value_or(0) : 0.0,
        used ? "kl_loss_coef" : "use_kl_loss");
  if (!used) return;
  p.set("loss_fn.reference_policy_kl_type", std::string("k3"), "use_kl_loss");
  p.set("loss_fn.kl_input_clamp_value", {}, "use_kl_loss");
  p.set("loss_fn.kl_output_clamp_value", 10.0, "use_kl_loss");
}

void set_correction(Pass& p) {
  const std::string at = "train_infer_correction.is_weight.";
  if (!p.file.flag(at + "enabled")) return;
  p.file.text(at + "weight_type");
  p.set("loss_fn.use_importance_sampling_correction", true, at + "enabled");
  if (!p.file.number(at + "upper_bound")) return;
  p.set("loss_fn.truncated_importance_sampling_type", std::string("tis"), at + "upper_bound");
  p.move(at + "upper_bound", "loss_fn.truncated_importance_sampling_ratio");
}

// A class of ROLL's that trains is its loss: that of ActorPGWorker is pg_variant's, which is vanilla when absent.
void check_worker(Pass& p) {
  const char* const key = "actor_train.worker_cls";
  const std::string worker = p.file.text(key).value_or("ActorWorker"), name = worker.substr(worker.rfind('.') + 1);
  if (name == "ActorPGWorker") {
    if (!p.file.given("actor_train.pg_variant") && !p.file.given("pg_variant"))
      p.file.missing(key, "the plain policy gradient (pg_variant: vanilla)", "; nearest: pg_variant: ppo");
  } else if (name != "ActorWorker") {
    p.file.missing(key, fmt::format("a worker in Python ({})", name), "; nearest: a loss plugin (docs/plugins.md)");
  }
}

}  // namespace

void translate_algorithm(Pass& p) {
  if (!p.file.given("adv_estimator")) {
    p.file.error("adv_estimator",
                 "is missing, and ROLL's default gae needs a critic, which is not available in this "
                 "version; nearest: grpo or reinforce");
  }
  const Normalisation n = normalisation(p);
  const std::string estimator = p.file.text("adv_estimator").value_or("");
  if (estimator == "grpo" || estimator == "reinforce") set_estimator(p, n);
  check_worker(p);
  set_clips(p, n);
  set_ratio_clips(p);
  set_kl(p);
  set_correction(p);
  p.set("loss_fn.token_level_loss", p.file.text("loss_agg_mode") == "token-mean", "loss_agg_mode");
  p.set("loss_fn.sequence_level_importance_ratios", p.file.text("importance_sampling") == "seq", "importance_sampling");
  p.move("max_len_mask", "grpo.overlong_filtering");
  p.set("policy.max_grad_norm",
        p.file.number("max_grad_norm") ? yaml::Node::Value(*p.file.number("max_grad_norm")) : yaml::Node::Value(),
        "max_grad_norm");
  for (const char* same : {"use_policy_loss_type", "pg_variant", "actor_train.pg_variant"}) p.file.text(same);
  for (const char* detail : {"difficulty_low_threshold", "difficulty_high_threshold"}) p.file.number(detail);
}

}  // namespace hexad::config::roll
