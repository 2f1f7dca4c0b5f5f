#include "core/config/schema/blocks.hpp"

namespace hexad::config {
namespace {

void add_validation(Schema& s) {
  s.add("grpo.val_period", kInt, "10", "validate every so many steps; 0 or -1: never in between").at_least(-1);
  s.add("grpo.val_start_at", kInt, "-1", "first step at which the periodic validation may happen; -1: any")
      .at_least(-1);
  s.add("grpo.val_at_start", kBool, "false", "validate before the first step");
  s.add("grpo.val_at_end", kBool, "false", "validate after the last step");
  s.add("grpo.max_val_samples", kInt | kNull, "256",
        "most validation prompts: the first of the sets; null: all there are")
      .at_least(1);
  s.add("grpo.val_batch_size", kInt | kNull, "256", "validation prompts that are drawn at once; null: all").at_least(1);
  s.add("grpo.val_num_generations_per_prompt", kInt, "1", "samples for each validation prompt; above 1 adds pass_k")
      .at_least(1);
  s.add("grpo.stop_at_validation_metric", kText | kNull, "null",
        "stop when this validation metric reaches stop_at_validation_threshold");
  s.add("grpo.stop_at_validation_threshold", kFloat | kNull, "null", "the threshold of stop_at_validation_metric");
}

void add_rewards(Schema& s) {
  s.section("grpo.reward_scaling", "affine map of the rewards, clamped to the source range");
  s.add("grpo.reward_scaling.enabled", kBool, "false", "scale rewards");
  s.add("grpo.reward_scaling.source_min", kFloat, "0.0", "lower end of the source range");
  s.add("grpo.reward_scaling.source_max", kFloat, "1.0", "upper end of the source range");
  s.add("grpo.reward_scaling.target_min", kFloat, "0.0", "what source_min becomes");
  s.add("grpo.reward_scaling.target_max", kFloat, "1.0", "what source_max becomes");
  s.section("grpo.reward_shaping", "punishment of long or cut-off responses, after scaling");
  s.add("grpo.reward_shaping.enabled", kBool, "false", "shape rewards");
  s.add("grpo.reward_shaping.overlong_buffer_length", kInt, "128",
        "tokens before max_response_length over which DAPO's punishment grows")
      .at_least(1);
  s.add("grpo.reward_shaping.overlong_buffer_penalty", kFloat, "1", "DAPO's punishment at max_response_length")
      .at_least(0);
  s.add("grpo.reward_shaping.max_response_length", kInt, "${policy.max_total_sequence_length}",
        "response length that earns the full punishment")
      .at_least(1);
  s.add("grpo.reward_shaping.stop_properly_penalty_coef", kFloat | kNull, "null",
        "factor on the reward of cut-off responses; when set, DAPO's punishment is not applied")
      .at_least(0)
      .at_most(1);
  const std::string at = "reward_penalties";
  s.section(at, "faults of a response that make its reward 0, before rewards are scaled and shaped");
  s.add(at + ".penalize_duplicated_reasoning", kBool | kNull, "false",
        "an answer that is its reasoning, word for word");
  s.add(at + ".penalize_empty_final_answer", kBool | kNull, "false", "nothing behind the reasoning");
  s.add(at + ".penalize_unwanted_tokens", kBool | kNull, "false", "one of token_ids.unwanted");
  s.add(at + ".penalize_malformed_think_tag", kBool | kNull, "false",
        "tags of reasoning that do not fit each other, or the prompt's");
  s.add(at + ".thinking_tags", kList, "[<think>, </think>]", "the texts around reasoning").elements(kText);
  s.section(at + ".token_ids", "tokens that the penalties look for", kMap | kNull);
  s.add(at + ".token_ids.unwanted", kInt | kList | kNull, "null", "tokens of penalize_unwanted_tokens").elements(kInt);
  s.add(at + ".token_ids.think_open", kInt | kNull, "null",
        "the token whose text opens reasoning, in place of thinking_tags");
  s.add(at + ".token_ids.think_close", kInt | kNull, "null", "the token whose text closes it");
}

void add_advantages(Schema& s) {
  s.add("grpo.normalize_rewards", kBool, "true", "divide advantages by the standard deviation of their group");
  s.add("grpo.use_leave_one_out_baseline", kBool, "true", "a sample's baseline is the mean reward of the others");
  s.section("grpo.adv_estimator", "how advantages are computed");
  s.add("grpo.adv_estimator.name", kText, "grpo", "the estimator")
      .one_of({"grpo", "gdpo", "reinforce_plus_plus"})
      .not_built({"opd", "gae", "raw_reward"});
  s.add("grpo.adv_estimator.normalize_rewards", kBool, "${grpo.normalize_rewards}", "as grpo.normalize_rewards");
  s.add("grpo.adv_estimator.use_leave_one_out_baseline", kBool, "${grpo.use_leave_one_out_baseline}",
        "as grpo.use_leave_one_out_baseline");
  s.add("grpo.adv_estimator.minus_baseline", kBool, "true", "reinforce_plus_plus: subtract the group's mean");
  s.add("grpo.adv_estimator.reward_weights", kList | kNull, "null", "gdpo: a weight for each reward component")
      .elements(kFloat);
  s.add("grpo.advantage_clip_low", kFloat | kNull, "null", "lower bound of advantages");
  s.add("grpo.advantage_clip_high", kFloat | kNull, "null", "upper bound of advantages");
  s.add("grpo.overlong_filtering", kBool, "false", "leave responses that were cut off out of the loss");
  s.add("grpo.seq_logprob_error_threshold", kFloat | kNull, "null",
        "leave sequences out of the loss whose mean exp|generation - training log-prob| is above this")
      .above(0);
  s.add("grpo.calculate_advantages_on_gpu", kBool, "false", "where advantages are computed")
      .accepted("advantages are a few numbers a sample and are computed by the controller");
  for (const char* span : {"invalid_tool_call", "malformed_thinking"}) {
    s.add(std::string("grpo.") + span + "_advantage", kFloat | kNull, "null", "advantage of such spans")
        .unavailable("the advantage of spans that NeMo-Gym marks", {"null"});
  }
}

void add_async(Schema& s) {
  const std::string at = "grpo.async_grpo";
  s.section(at, "training while generation goes on, on ranks of its own", kMap | kNull);
  s.add(at + ".enabled", kBool, "false", "train asynchronously");
  s.add(at + ".max_trajectory_age_steps", kInt, "1",
        "how many steps old the weights that began a sample may be; 0: as the synchronous run")
      .at_least(0);
  s.add(at + ".max_generation_failures", kInt, "0", "consecutive failures of generation that are tolerated")
      .at_least(0);
  s.add(at + ".in_flight_weight_updates", kBool, "false",
        "update weights while requests run, which go on under the new ones; false: they end first");
  s.add(at + ".recompute_kv_cache_after_weight_updates", kBool, "false",
        "compute the KV cache of running requests again under the new weights");
  s.add(at + ".group_timeout_s", kFloat, "300",
        "a group that a step waits for and that has run longer is given up, and its prompt generated again")
      .above(0);
}

// Keys that some of NeMo-RL's recipes hold and none of its code reads.
void add_unread(Schema& s) {
  s.add("grpo.use_best_at_k", kBool, "false", "train on the best of k samples").unavailable("training on best@k");
  s.add("grpo.best_at_k_k", kInt | kNull, "null", "k of it").at_least(1).dormant();
  s.add("grpo.best_at_k_m", kInt | kNull, "null", "m of it").at_least(1).dormant();
  s.add("grpo.use_combined_training", kBool, "false", "train on best@k and pass@1 together")
      .unavailable("training on best@k and pass@1 together");
  s.add("grpo.combined_training_weight_mode", kText | kNull, "null", "where their weights come from").dormant();
  s.add("grpo.combined_training_best_at_k_weight", kFloat | kNull, "null", "weight of best@k").dormant();
  s.add("grpo.combined_training_pass_at_1_weight", kFloat | kNull, "null", "weight of pass@1").dormant();
  for (const char* key :
       {"penalize_invalid_tool_call", "penalize_malformed_thinking", "invalid_tool_call_strategy",
        "zero_variance_prompt_filtering", "dynamic_sampling_oversample_ratio", "num_val_generations_per_prompt"}) {
    s.add(std::string("grpo.") + key, kAny, "", "")
        .accepted("NeMo-RL reads this key nowhere, and neither does this engine");
  }
}

}  // namespace

void add_grpo(Schema& s) {
  s.section("grpo", "the GRPO algorithm");
  s.add("grpo.num_prompts_per_step", kInt, "32", "different prompts in one step").at_least(1);
  s.add("grpo.num_generations_per_prompt", kInt, "16", "samples for each prompt: the group size").at_least(1);
  s.add("grpo.max_rollout_turns", kInt, "1", "most turns of assistant and environment in a sample").at_least(1);
  s.add("grpo.truncated_response_ends_sample", kBool, "false",
        "a response that the limit of tokens cuts off is its sample's last one, whatever the environment replies; "
        "NeMo-RL goes on");
  s.add("grpo.max_num_epochs", kInt, "1", "most passes over the training data").at_least(1);
  s.add("grpo.max_num_steps", kInt, "1000000", "most steps").at_least(1);
  s.add("grpo.max_nonfinite_steps", kInt, "5",
        "stop after so many steps in a row that were skipped because the loss or the gradient was not finite")
      .at_least(1);
  s.add("grpo.seed", kInt, "42", "seed of sampling, data order and validation split").at_least(0);
  s.add("grpo.skip_reference_policy_logprobs_calculation", kBool, "false",
        "do without the reference policy (so too where loss_fn.reference_policy_kl_penalty is 0)");
  add_advantages(s);
  add_validation(s);
  add_rewards(s);
  s.add("grpo.use_dynamic_sampling", kBool, "false",
        "keep only groups whose rewards differ, generating until there are enough");
  s.add("grpo.dynamic_sampling_max_gen_batches", kInt, "10",
        "a step that has too few samples after one rollout more than this ends the run")
      .at_least(1);
  s.add("grpo.batch_multiplier", kFloat, "1",
        "prompts of one rollout, as a multiple of num_prompts_per_step (needs use_dynamic_sampling)")
      .at_least(1);
  add_async(s);
  s.add("grpo.deduplicate_multimodal_data", kBool, "false", "store images of a group once")
      .accepted("there are no images in a text-only batch");
  s.add("grpo.debug_payload_metrics", kBool, "false", "log sizes of payloads between Ray actors")
      .accepted("there are no Ray actors");
  add_unread(s);
}

}  // namespace hexad::config
