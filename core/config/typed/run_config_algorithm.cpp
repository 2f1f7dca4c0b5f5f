#include "core/config/typed/run_config_read.hpp"

namespace hexad::config {
namespace {

RewardShapingConfig read_shaping(const Reader& r) {
  RewardShapingConfig c;
  r.read("enabled", c.enabled);
  r.read("overlong_buffer_length", c.overlong_buffer_length);
  r.read("overlong_buffer_penalty", c.overlong_buffer_penalty);
  r.read("max_response_length", c.max_response_length);
  r.read("stop_properly_penalty_coef", c.stop_properly_penalty_coef);
  return c;
}

RewardScalingConfig read_scaling(const Reader& r) {
  RewardScalingConfig c;
  r.read("enabled", c.enabled);
  r.read("source_min", c.source_min);
  r.read("source_max", c.source_max);
  r.read("target_min", c.target_min);
  r.read("target_max", c.target_max);
  return c;
}

AdvEstimatorConfig read_estimator(const Reader& r) {
  AdvEstimatorConfig c;
  r.read("name", c.name);
  r.read("normalize_rewards", c.normalize_rewards);
  r.read("use_leave_one_out_baseline", c.use_leave_one_out_baseline);
  r.read("minus_baseline", c.minus_baseline);
  r.read("reward_weights", c.reward_weights);
  return c;
}

AsyncGrpoConfig read_async(const Reader& r) {
  AsyncGrpoConfig c;
  r.read("enabled", c.enabled);
  r.read("max_trajectory_age_steps", c.max_trajectory_age_steps);
  r.read("max_generation_failures", c.max_generation_failures);
  r.read("in_flight_weight_updates", c.in_flight_weight_updates);
  r.read("recompute_kv_cache_after_weight_updates", c.recompute_kv_cache_after_weight_updates);
  r.read("group_timeout_s", c.group_timeout_s);
  return c;
}

void read_validation(const Reader& r, GrpoConfig& c) {
  r.read("val_period", c.val_period);
  r.read("val_start_at", c.val_start_at);
  r.read("val_at_start", c.val_at_start);
  r.read("val_at_end", c.val_at_end);
  r.read("max_val_samples", c.max_val_samples);
  r.read("val_num_generations_per_prompt", c.val_num_generations_per_prompt);
  r.read("stop_at_validation_metric", c.stop_at_validation_metric);
  r.read("stop_at_validation_threshold", c.stop_at_validation_threshold);
  r.read("val_batch_size", c.val_batch_size);
}

}  // namespace

GrpoConfig read_grpo(const yaml::Node& root) {
  const Reader r(root, "grpo");
  GrpoConfig c;
  r.read("num_prompts_per_step", c.num_prompts_per_step);
  r.read("num_generations_per_prompt", c.num_generations_per_prompt);
  r.read("max_rollout_turns", c.max_rollout_turns);
  r.read("truncated_response_ends_sample", c.truncated_response_ends_sample);
  r.read("max_num_epochs", c.max_num_epochs);
  r.read("max_num_steps", c.max_num_steps);
  r.read("normalize_rewards", c.normalize_rewards);
  r.read("use_leave_one_out_baseline", c.use_leave_one_out_baseline);
  r.read("overlong_filtering", c.overlong_filtering);
  r.read("advantage_clip_low", c.advantage_clip_low);
  r.read("advantage_clip_high", c.advantage_clip_high);
  r.read("seed", c.seed);
  r.read("use_dynamic_sampling", c.use_dynamic_sampling);
  r.read("dynamic_sampling_max_gen_batches", c.dynamic_sampling_max_gen_batches);
  r.read("batch_multiplier", c.batch_multiplier);
  r.read("seq_logprob_error_threshold", c.seq_logprob_error_threshold);
  r.read("skip_reference_policy_logprobs_calculation", c.skip_reference_policy_logprobs_calculation);
  r.read("max_nonfinite_steps", c.max_nonfinite_steps);
  read_validation(r, c);
  c.reward_shaping = read_shaping(Reader(root, "grpo.reward_shaping"));
  c.reward_scaling = read_scaling(Reader(root, "grpo.reward_scaling"));
  c.async_grpo = read_async(Reader(root, "grpo.async_grpo"));
  c.adv_estimator = read_estimator(Reader(root, "grpo.adv_estimator"));
  // Without a penalty nothing asks for the reference policy.
  double penalty = LossConfig().reference_policy_kl_penalty;
  Reader(root, "loss_fn").read("reference_policy_kl_penalty", penalty);
  if (penalty == 0) c.skip_reference_policy_logprobs_calculation = true;
  return c;
}

RewardPenaltiesConfig read_penalties(const yaml::Node& root) {
  const std::string at = "reward_penalties";
  const Reader r(root, at);
  RewardPenaltiesConfig c;
  r.read("penalize_duplicated_reasoning", c.penalize_duplicated_reasoning);
  r.read("penalize_empty_final_answer", c.penalize_empty_final_answer);
  r.read("penalize_unwanted_tokens", c.penalize_unwanted_tokens);
  r.read("penalize_malformed_think_tag", c.penalize_malformed_think_tag);
  r.read("thinking_tags", c.thinking_tags);
  r.read("token_ids.think_open", c.think_open);
  r.read("token_ids.think_close", c.think_close);
  nlohmann::ordered_json unwanted;
  r.read("token_ids.unwanted", unwanted);
  if (unwanted.is_number()) unwanted = {unwanted};
  if (unwanted.is_array()) c.unwanted = unwanted.get<std::vector<int64_t>>();
  return c;
}

SupervisedConfig read_supervised(const yaml::Node& root) {
  const Reader r(root, name_of(algorithm_of(root)));
  SupervisedConfig c;
  r.read("max_num_epochs", c.max_num_epochs);
  r.read("max_num_steps", c.max_num_steps);
  r.read("val_period", c.val_period);
  r.read("val_batches", c.val_batches);
  r.read("val_global_batch_size", c.val_global_batch_size);
  r.read("val_micro_batch_size", c.val_micro_batch_size);
  r.read("val_at_start", c.val_at_start);
  r.read("val_at_end", c.val_at_end);
  r.read("seed", c.seed);
  r.read("max_nonfinite_steps", c.max_nonfinite_steps);
  r.read("only_unmask_final", c.only_unmask_final);
  return c;
}

LossConfig read_loss(const yaml::Node& root) {
  const Reader r(root, "loss_fn");
  LossConfig c;
  r.read("plugin", c.plugin);
  r.read("plugin_config", c.plugin_config);
  if (algorithm_of(root) == Algorithm::dpo) c.section = "dpo";
  c.loss_fn = root.child("loss_fn") ? root.at("loss_fn").to_json() : nlohmann::ordered_json::object();
  c.loss_fn.erase("plugin");
  c.loss_fn.erase("plugin_config");
  r.read("reference_policy_kl_penalty", c.reference_policy_kl_penalty);
  r.read("reference_policy_kl_type", c.reference_policy_kl_type);
  r.read("use_importance_sampling_correction", c.use_importance_sampling_correction);
  r.read("force_on_policy_ratio", c.force_on_policy_ratio);
  r.read("use_kl_in_reward", c.use_kl_in_reward);
  return c;
}

}  // namespace hexad::config
