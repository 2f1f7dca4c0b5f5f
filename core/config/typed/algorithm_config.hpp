// The typed view of the algorithms' blocks and of `loss_fn`. Field names are the keys; docs/config.md says what each
// means.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace hexad::config {

struct RewardShapingConfig {
  bool enabled = false;
  int64_t overlong_buffer_length = 128;
  double overlong_buffer_penalty = 1;
  int64_t max_response_length = 0;
  std::optional<double> stop_properly_penalty_coef;
};

struct RewardScalingConfig {
  bool enabled = false;
  double source_min = 0, source_max = 1, target_min = 0, target_max = 1;
};

struct AdvEstimatorConfig {
  std::string name = "grpo";
  bool normalize_rewards = true;
  bool use_leave_one_out_baseline = true;
  bool minus_baseline = true;
  std::vector<double> reward_weights;
};

struct AsyncGrpoConfig {
  bool enabled = false;
  int64_t max_trajectory_age_steps = 1;
  int64_t max_generation_failures = 0;
  bool in_flight_weight_updates = false;
  bool recompute_kv_cache_after_weight_updates = false;
  double group_timeout_s = 300;
};

struct GrpoConfig {
  int64_t num_prompts_per_step = 32;
  int64_t num_generations_per_prompt = 16;
  int64_t max_rollout_turns = 1;
  bool truncated_response_ends_sample = false;
  int64_t max_num_epochs = 1;
  int64_t max_num_steps = 1000000;
  bool normalize_rewards = true;
  bool use_leave_one_out_baseline = true;
  int64_t val_period = 10;
  int64_t val_start_at = -1;
  bool val_at_start = false;
  bool val_at_end = false;
  bool overlong_filtering = false;
  std::optional<double> advantage_clip_low;
  std::optional<double> advantage_clip_high;
  std::optional<int64_t> max_val_samples = 256;  // nothing: all
  int64_t val_num_generations_per_prompt = 1;
  std::optional<std::string> stop_at_validation_metric;
  std::optional<double> stop_at_validation_threshold;
  std::optional<int64_t> val_batch_size = 256;  // nothing: as many as are validated on
  int64_t seed = 42;
  bool use_dynamic_sampling = false;
  int64_t dynamic_sampling_max_gen_batches = 10;
  double batch_multiplier = 1;
  RewardShapingConfig reward_shaping;
  RewardScalingConfig reward_scaling;
  AdvEstimatorConfig adv_estimator;
  AsyncGrpoConfig async_grpo;
  std::optional<double> seq_logprob_error_threshold;
  bool skip_reference_policy_logprobs_calculation = false;  // also true where reference_policy_kl_penalty is 0
  int64_t max_nonfinite_steps = 5;
};

struct RewardPenaltiesConfig {
  bool penalize_duplicated_reasoning = false;
  bool penalize_empty_final_answer = false;
  bool penalize_unwanted_tokens = false;
  bool penalize_malformed_think_tag = false;
  std::vector<std::string> thinking_tags = {"<think>", "</think>"};
  std::vector<int64_t> unwanted;                   // token_ids.unwanted
  std::optional<int64_t> think_open, think_close;  // token_ids.*; both or none
};

struct CompatConfig {
  bool dynamic_sampling_by_sample = false;
  bool filtered_samples_vote = false;
};

// sft, dpo and rm: training on examples. What is one: a conversation (sft), or a pair of a chosen and a rejected one.
struct SupervisedConfig {
  int64_t max_num_epochs = 1;
  int64_t max_num_steps = -1;  // -1: as many as the epochs hold
  int64_t val_period = 10;
  int64_t val_batches = 8;  // -1: all there are
  int64_t val_global_batch_size = 32;
  int64_t val_micro_batch_size = 1;
  bool val_at_start = true;
  bool val_at_end = false;
  int64_t seed = 42;
  int64_t max_nonfinite_steps = 5;
  bool only_unmask_final = false;  // sft
};

struct LossConfig {
  std::string plugin = "clipped_pg";
  nlohmann::ordered_json plugin_config;
  std::string section = "loss_fn";  // the block that holds the loss's settings: dpo for DPO
  nlohmann::ordered_json loss_fn;   // loss_fn whole, without the two above
  double reference_policy_kl_penalty = 0.01;
  std::string reference_policy_kl_type = "k3";
  bool use_importance_sampling_correction = false;
  bool force_on_policy_ratio = false;
  bool use_kl_in_reward = false;
};

}  // namespace hexad::config
