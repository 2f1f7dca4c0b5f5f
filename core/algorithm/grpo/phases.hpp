// The phases of a step on rollouts, in their order: rewards are shaped, log-probs asked for, advantages estimated; the
// validation between steps; and what both leave in the run's log folder, sample by sample.
#pragma once
#include <span>
#include "core/algorithm/grpo/grpo.hpp"
#include "core/cluster/policy.hpp"
#include "core/config/typed/run_config.hpp"
#include "core/data/batch.hpp"
#include "core/rollout/rollout.hpp"
#include "core/telemetry/run_log.hpp"

namespace hexad::algorithm {

using telemetry::Metrics;

// Scaling, shaping, overlong filtering, in NeMo-RL's order; changes `rewards` and `sample_mask`. Where rewards are
// shaped, adds `unshaped_rewards` (f32 [B]).
void shape(const config::GrpoConfig& config, rollout::Rollout& rollout);

// Of each row the tokens that the model wrote.
std::vector<int64_t> response_lengths(const data::Batch& batch);

// Penalties of responses (grpo.reward_penalties), then shape().
void penalize_and_shape(const Grpo& run, rollout::Rollout& rollout);

// Whether anything needs prev_logprobs: a loss on-policy by decree (loss_fn.force_on_policy_ratio) does not.
bool needs_prev_logprobs(const config::RunConfig& config, const cluster::LossNeeds& loss);

// The policy's log-probs of the same tokens [T], before and after sampling's top_k and top_p.
struct FilteredLogprobs {
  std::span<const float> before, after;
};
// Takes a generator's log-probs [T] that are before the filters to those after them: log q(t) = log p(t) - log Z, where
// Z is the probability that the filters keep. Of Z the policy's own value is taken, which differs from the generator's
// as their log-probs do. Left as they are: tokens outside of token_mask, and those that the policy's filters remove.
void apply_filters(const FilteredLogprobs& policy, std::span<const float> token_mask, std::span<float> generation);

// Adds prev_logprobs and reference_policy_logprobs (f32 [T]) as far as the loss and the config need them; zeros
// otherwise. Takes generation_logprobs to those after sampling's filters, if the generator gives those before them.
void add_logprobs(const config::RunConfig& config, cluster::Policy& policy, data::Batch& batch);

// Adds `advantages` (f32 [T]), after the log-prob error mask. Returns metrics (advantages/*, baseline_reward/*, and, of
// prev_logprobs that are known and not zeros, *seq_mult_prob_error).
Metrics add_advantages(const config::RunConfig& config, rollout::Rollout& rollout, bool prev_known = true);

// mean, max and min of the advantages over tokens with mask 1, as advantages/mean, /max, /min; 0 without such tokens.
Metrics advantage_metrics(std::span<const float> advantages, std::span<const float> mask);

// Shares of samples with baseline 0, 1 and in between, as baseline_reward/pct_0, pct_1, pct_mixed.
Metrics baseline_metrics(std::span<const float> baseline);

// The standard deviation of every sample's group [B], of rewards as they were before shaping, of gdpo the largest of
// them and their parts: 0 for all samples of a group whose rewards do not vary, and for none of another. With
// compat.dynamic_sampling_by_sample parts do not count, and under a leave-one-out baseline it is that of its siblings.
std::vector<float> reward_std(const config::RunConfig& config, const rollout::Rollout& rollout);

// How many validation prompts are drawn; 0: there is nothing to validate on.
int64_t validation_prompts(const Grpo& run);

// Runs the validation prompts, of which there is at least one, on the weights that the generators have; returns
// accuracy, avg_length and, with several samples a prompt, pass_k.
Metrics validate(Grpo& run);

// Where samples are logged, and how many of a step; nothing: all.
struct SampleLog {
  telemetry::RunLog& log;
  std::optional<int64_t> samples_per_step;
  std::shared_ptr<const text::Tokenizer> tokenizer;
  bool has_prev;  // prev_logprobs are known
};

// Beside the step. train_data_step<N>.jsonl: texts, tokens, masks, log-probs, advantages; of a part the text of every
// token too; in the first line the lengths of all responses. Of a validation val_data_step<N>.jsonl: texts and rewards.
void log_samples(const SampleLog& to, const rollout::Rollout& rollout, int64_t step, bool is_training);

}  // namespace hexad::algorithm
