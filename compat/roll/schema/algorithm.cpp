#include "compat/roll/missing.hpp"
#include "compat/roll/schema/schema.hpp"

namespace hexad::config::roll {
namespace {

void add_advantages(Schema& s) {
  s.add("adv_estimator", kText, "gae", "how advantages are computed")
      .one_of({"grpo", "reinforce"})
      .not_built({"gae", "gigpo", "step_reinforce", "agentic_reinforce"});
  for (const char* name : {"norm_mean_type", "norm_std_type"}) {
    s.add(name, kText | kNull, "null", "over what rewards are normalised")
        .one_of({"group", "batch"})
        .not_built({"running"});
  }
  s.add("whiten_advantages", kBool, "false", "normalise advantages over all tokens of a step");
  s.add("advantage_clip", kFloat | kNull, "null", "bound of advantages").above(0);
  s.add("reward_clip", kFloat | kNull, "null", "bound of normalised rewards").above(0);
  s.add("whiten_rewards", kBool, "false", "").unavailable("normalising rewards over tokens");
  s.add("gamma", kFloat, "1", "").unavailable("discounting over tokens", {"1", "1.0"});
  s.add("add_token_level_kl", kBool, "false", "")
      .unavailable("a KL penalty in the rewards with its controller (use_kl_loss puts it into the loss)");
  for (const char* name : {"init_kl_coef", "kl_penalty", "target_kl", "kl_horizon"}) {
    s.add(name, kAny, "", "").accepted("only add_token_level_kl reads it");
  }
  for (const char* name : {"lambd", "value_clip", "critic_warmup"}) {
    s.add(name, kAny, "", "").accepted("of a critic, which grpo and reinforce do without");
  }
}

void add_loss(Schema& s) {
  s.add("pg_clip", kFloat | kNull, "0.2", "the ratio is clipped so far from 1").above(0);
  s.add("use_pg_clip_range", kBool, "false", "pg_clip_low and pg_clip_high in place of pg_clip");
  s.add("pg_clip_low", kFloat | kNull, "0.2", "below 1").above(0);
  s.add("pg_clip_high", kFloat | kNull, "0.2", "above 1").above(0);
  s.add("dual_clip_loss", kBool, "false", "bound the loss of negative advantages by 1 + 2 pg_clip");
  s.add("use_kl_loss", kBool, "false", "the KL from the reference policy is part of the loss");
  s.add("kl_loss_coef", kFloat, "0", "its weight").at_least(0);
  s.add("loss_agg_mode", kText, "seq-mean-token-mean", "what the loss is a mean over")
      .one_of({"token-mean", "seq-mean-token-mean"})
      .not_built({"seq-mean-token-sum", "seq-mean-token-sum-norm"});
  s.add("importance_sampling", kText, "token", "one ratio a token, or (seq: GSPO) a sequence").one_of({"token", "seq"});
  s.add("max_grad_norm", kFloat | kNull, "1.0", "gradients are clipped to this norm").above(0);
  s.add("use_policy_loss_type", kText, "PPO", "the loss").one_of({"PPO"}).not_built({"PG"});
  s.add("pg_variant", kText | kNull, "null", "the loss")
      .one_of({"ppo"})
      .not_built({"vanilla", "tis", "topr", "cispo", "kimi15"});
  s.add("entropy_loss_coef", kFloat, "0", "").unavailable("a bonus for entropy in the loss", {"0", "0.0"});
  s.add("postive_loss_coef", kFloat, "0", "").unavailable("a loss of its own for positive samples", {"0", "0.0"});
  s.add("rl_loss_coef", kFloat, "1.0", "").unavailable("a loss of its own for positive samples", {"1", "1.0"});
  s.add("l2", kFloat, "0", "").unavailable("an L2 term in the loss", {"0", "0.0"});
  s.add("use_topr_neg_loss_coef", kFloat, "0", "").unavailable(kTopr, {"0", "0.0"});
  s.add("use_topr_loss", kBool, "false", "").unavailable(kTopr);
  for (const char* name : {"tis_lower_bound", "tis_upper_bound", "cispo_epsilon_low", "cispo_epsilon_high",
                           "cispo_use_unified_mask", "kimi15_tau"}) {
    s.add(name, kAny, "", "").accepted("of a pg_variant that is not available");
  }
  for (const char* name :
       {"enable_reference", "enable_old_logprobs_recompute", "force_disable_old_logprobs_recompute"}) {
    s.add(name, kBool, "false", "")
        .accepted("old log-probs come from the trainer, and those of the reference where use_kl_loss asks for them");
  }
}

void add_correction(Schema& s) {
  const std::string at = "train_infer_correction";
  s.section(at, "the difference between trainer and generator", kMap | kNull);
  s.section(at + ".is_weight", "weights of tokens", kMap | kNull);
  s.add(at + ".is_weight.enabled", kBool, "false", "weight tokens by exp(trainer's - generator's log-prob)");
  s.add(at + ".is_weight.weight_type", kText, "token", "over what")
      .one_of({"token"})
      .not_built({"segment", "geometric", "sequence"});
  s.add(at + ".is_weight.upper_bound", kFloat | kNull, "1.2", "their upper bound").above(0);
  s.add(at + ".is_weight.detach", kBool, "true", "").unavailable("a gradient through those weights", {"true"});
  s.add(at + ".filters", kList | kNull, "[]", "").unavailable("filters of tokens", {"[]", "null"});
}

void add_masks(Schema& s) {
  s.add("max_len_mask", kBool, "false", "responses that were cut off are left out of the loss");
  s.add("mask_type", kText, "loss", "").accepted("masked samples are left out of the loss, not of the advantages");
  s.add("difficulty_mask", kBool, "false", "")
      .accepted(
          "not available: groups outside the thresholds stay in the loss (with group normalisation those that "
          "are all right or all wrong have advantage 0)");
  s.add("difficulty_low_threshold", kFloat, "0.0", "");
  s.add("difficulty_high_threshold", kFloat, "1.0", "");
  s.add("error_max_len_clip", kBool, "false", "").unavailable("a mask of long wrong responses");
  s.add("error_max_len_threshold", kInt, "9999999999", "").dormant();
  for (const char* name : {"difficulty_loss_weight", "length_loss_weight"}) {
    s.add(name, kBool, "false", "").unavailable("weights of samples in the loss");
  }
  s.add("balance_length", kBool, "false", "").accepted("batches are always balanced between ranks");
  s.add("minibatch_data_iter_num", kInt, "1", "").unavailable("training more than once on a batch", {"1"});
}

void add_retired(Schema& s) {
  for (const char* name :
       {"use_reward_scaling", "add_len_reward", "use_reward_norm", "reward_norm", "reward_shift", "reward_scale"}) {
    s.add(name, kAny, "", "")
        .accepted(
            "ROLL reads this key no more; norm_mean_type, norm_std_type and reward_clip say what becomes of rewards");
  }
  for (const char* name : {"is_pure_opd", "use_opd"}) {
    s.add(name, kBool, "false", "").unavailable("on-policy distillation");
  }
  s.add("pure_opd_pipeline_type", kText, "rlvr", "").dormant();
  for (const char* name : {"teacher", "student_train", "student_infer", "student"}) {
    s.add(name, kMap | kNull, "", "").open().unavailable("distillation", {"null"});
  }
  for (const char* name : {"train_env_manager", "val_env_manager", "custom_envs"}) {
    s.add(name, kMap | kNull, "", "").open().unavailable("ROLL's agentic pipeline", {"null"});
  }
  s.add("sft_train", kMap | kNull, "", "").open().unavailable("ROLL's supervised pipeline", {"null"});
}

}  // namespace

void add_algorithm(Schema& s) {
  add_advantages(s);
  add_loss(s);
  add_correction(s);
  add_masks(s);
  add_retired(s);
}

}  // namespace hexad::config::roll
