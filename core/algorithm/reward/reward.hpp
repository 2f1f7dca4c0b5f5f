// What happens to rewards between the environment and the advantage, and to samples between the rollout and the loss.
#pragma once
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hexad::data {
class Batch;
}

namespace hexad::algorithm {

// [B] 1 for samples that have a reward: others count in no baseline and no mean.
std::vector<float> scored(const data::Batch& batch);

// [B] 1 for samples that count in the baseline and deviation of their group: those that have a reward and train, or
// with `filtered_too` those that only have a reward.
std::vector<float> voters(const data::Batch& batch, bool filtered_too);

// The mean of the rewards of samples that have one; 0 where none has.
double mean_reward(const data::Batch& batch);

// grpo.reward_scaling: clamp to [source_min, source_max], then map linearly to [target_min, target_max].
struct RewardScaling {
  double source_min = 0, source_max = 1, target_min = 0, target_max = 1;
};
// In place; returns how many rewards the clamp changed.
int64_t scale_rewards(std::span<float> rewards, const RewardScaling& scaling);

// grpo.reward_shaping.
struct RewardShaping {
  // DAPO's penalty; all three must be set, unless the coefficient below is.
  std::optional<int64_t> overlong_buffer_length = {};
  std::optional<double> overlong_buffer_penalty = {};  // >= 0
  std::optional<int64_t> max_response_length = {};
  // When set, truncated samples' rewards are multiplied by it and the overlong penalty is off; in [0, 1].
  std::optional<double> stop_properly_penalty_coef = {};
};
// DAPO's soft punishment of responses that enter the last `overlong_buffer_length` tokens before max_response_length:
// reward += min(-(length - (max - buffer)) / buffer * penalty, 0), without a lower bound. In place.
// `response_lengths`: tokens of the first assistant message. Throws Error(config) for values out of range.
void shape_rewards(std::span<float> rewards, std::span<const int64_t> response_lengths,
                   std::span<const uint8_t> truncated, const RewardShaping& shaping);

// grpo.overlong_filtering: a truncated sample leaves the loss.
void filter_overlong(std::span<float> sample_mask, std::span<const uint8_t> truncated);

// grpo.seq_logprob_error_threshold: a sample whose mean exp(|generation - training log-prob|) over its tokens exceeds
// the threshold leaves the loss. Arrays are packed [T]; position 0 of a sample never counts. `sample_mask` [B] is
// changed when there is a threshold. Returns max/mean/min_seq_mult_prob_error, the same
// with _after_mask, num_masked_seqs_by_logprob_error and masked_correct_pct (share of masked samples with reward 1).
struct SequenceLogprobs {
  std::span<const int64_t> cu_seqlens;
  std::span<const float> token_mask;
  std::span<const float> generation;
  std::span<const float> training;
};
std::map<std::string, double> mask_logprob_errors(const SequenceLogprobs& input, std::span<const float> rewards,
                                                  std::optional<double> threshold, std::span<float> sample_mask);

// Tokens that the sampling filters (top_k, top_p) remove have a log-prob of -inf, prompts' tokens among them: makes it
// 0, as NeMo-RL's mask_out_neg_inf_logprobs, since a mask of 0 does not undo an infinity.
inline void zero_removed(std::span<float> logprobs) {
  for (float& logprob : logprobs)
    if (logprob == -INFINITY) logprob = 0;
}

}  // namespace hexad::algorithm
