#include "core/algorithm/reward/reward.hpp"

#include <algorithm>
#include <cmath>

#include "core/data/batch.hpp"
#include "lib/base/error.hpp"

namespace hexad::algorithm {
namespace {

void check_count(std::string_view what, size_t got, size_t want) {
  if (got != want) fail(ErrorKind::data, "{}: {} values for {} samples", what, got, want);
}

void check_overlong(const RewardShaping& shaping) {
  if (!shaping.overlong_buffer_length || !shaping.overlong_buffer_penalty || !shaping.max_response_length) {
    fail(ErrorKind::config,
         "grpo.reward_shaping is enabled: set overlong_buffer_length, overlong_buffer_penalty and max_response_length, "
         "or stop_properly_penalty_coef");
  }
  if (*shaping.overlong_buffer_penalty < 0) {
    fail(ErrorKind::config, "grpo.reward_shaping.overlong_buffer_penalty must not be negative, got {}",
         *shaping.overlong_buffer_penalty);
  }
  if (*shaping.overlong_buffer_length <= 0) {
    fail(ErrorKind::config, "grpo.reward_shaping.overlong_buffer_length must be positive, got {}",
         *shaping.overlong_buffer_length);
  }
}

// Mean exp(|difference|) over the sample's tokens (position 0 excluded), or nothing if the loss sees none of them.
std::optional<double> logprob_error(const SequenceLogprobs& input, int64_t sample, float sample_mask) {
  double sum = 0, count = 0;
  for (int64_t t = input.cu_seqlens[sample] + 1; t < input.cu_seqlens[sample + 1]; ++t) {
    const double mask = double{input.token_mask[t]} * sample_mask;
    if (mask == 0) continue;
    sum += std::exp(std::abs(double{input.generation[t]} - input.training[t]) * mask) * mask;
    count += mask;
  }
  return count > 0 ? std::optional(sum / std::max(count, 1.0)) : std::nullopt;
}

void add_statistics(std::map<std::string, double>& metrics, const std::string& suffix,
                    const std::vector<double>& errors) {
  double sum = 0;
  for (double error : errors) sum += error;
  const bool any = !errors.empty();
  metrics["max_seq_mult_prob_error" + suffix] = any ? *std::max_element(errors.begin(), errors.end()) : 0;
  metrics["mean_seq_mult_prob_error" + suffix] = any ? sum / static_cast<double>(errors.size()) : 0;
  metrics["min_seq_mult_prob_error" + suffix] = any ? *std::min_element(errors.begin(), errors.end()) : 0;
}

}  // namespace

int64_t scale_rewards(std::span<float> rewards, const RewardScaling& scaling) {
  if (!(scaling.source_max > scaling.source_min)) {
    fail(ErrorKind::config, "grpo.reward_scaling: source_max ({}) must exceed source_min ({})", scaling.source_max,
         scaling.source_min);
  }
  int64_t clipped = 0;
  const double slope = (scaling.target_max - scaling.target_min) / (scaling.source_max - scaling.source_min);
  for (float& reward : rewards) {
    const double inside = std::clamp<double>(reward, scaling.source_min, scaling.source_max);
    clipped += inside != reward;
    reward = static_cast<float>(scaling.target_min + (inside - scaling.source_min) * slope);
  }
  return clipped;
}

void shape_rewards(std::span<float> rewards, std::span<const int64_t> response_lengths,
                   std::span<const uint8_t> truncated, const RewardShaping& shaping) {
  if (shaping.stop_properly_penalty_coef) {
    const double coefficient = *shaping.stop_properly_penalty_coef;
    if (!(coefficient >= 0 && coefficient <= 1)) {
      fail(ErrorKind::config, "grpo.reward_shaping.stop_properly_penalty_coef must be in [0, 1], got {}", coefficient);
    }
    check_count("reward shaping, truncated", truncated.size(), rewards.size());
    for (size_t i = 0; i < rewards.size(); ++i) {
      if (truncated[i]) rewards[i] = static_cast<float>(rewards[i] * coefficient);
    }
    return;
  }
  check_overlong(shaping);
  check_count("reward shaping, response lengths", response_lengths.size(), rewards.size());
  const int64_t expected = *shaping.max_response_length - *shaping.overlong_buffer_length;
  for (size_t i = 0; i < rewards.size(); ++i) {
    const double beyond = static_cast<double>(response_lengths[i] - expected);
    const double penalty =
        -beyond / static_cast<double>(*shaping.overlong_buffer_length) * *shaping.overlong_buffer_penalty;
    rewards[i] = static_cast<float>(rewards[i] + std::min(penalty, 0.0));
  }
}

void filter_overlong(std::span<float> sample_mask, std::span<const uint8_t> truncated) {
  check_count("overlong filtering", truncated.size(), sample_mask.size());
  for (size_t i = 0; i < sample_mask.size(); ++i) {
    if (truncated[i]) sample_mask[i] = 0;
  }
}

std::map<std::string, double> mask_logprob_errors(const SequenceLogprobs& input, std::span<const float> rewards,
                                                  std::optional<double> threshold, std::span<float> sample_mask) {
  check_count("log-prob errors, cu_seqlens", input.cu_seqlens.size(), sample_mask.size() + 1);
  check_count("log-prob errors, rewards", rewards.size(), sample_mask.size());
  std::vector<double> errors, errors_after;
  double masked = 0, masked_right = 0;
  for (size_t i = 0; i < sample_mask.size(); ++i) {
    const std::optional<double> error = logprob_error(input, static_cast<int64_t>(i), sample_mask[i]);
    if (!error) continue;
    errors.push_back(*error);
    if (threshold && !(*error <= *threshold)) {
      sample_mask[i] = 0;
      masked += 1;
      masked_right += rewards[i] == 1;
    } else {
      errors_after.push_back(*error);
    }
  }
  std::map<std::string, double> metrics;
  add_statistics(metrics, "", errors);
  add_statistics(metrics, "_after_mask", errors_after);
  metrics["num_masked_seqs_by_logprob_error"] = masked;
  metrics["masked_correct_pct"] = masked > 0 ? masked_right / masked : 0;
  return metrics;
}

std::vector<float> scored(const data::Batch& batch) {
  std::vector<float> valid;
  for (const uint8_t invalid : batch.at("invalid").span<uint8_t>()) valid.push_back(invalid ? 0.0f : 1.0f);
  return valid;
}

std::vector<float> voters(const data::Batch& batch, bool filtered_too) {
  std::vector<float> voting = scored(batch);
  const auto sample_mask = batch.at("sample_mask").span<float>();
  for (size_t i = 0; i < voting.size() && !filtered_too; ++i)
    if (sample_mask[i] == 0) voting[i] = 0;
  return voting;
}

double mean_reward(const data::Batch& batch) {
  const std::vector<float> valid = scored(batch);
  const auto rewards = batch.at("rewards").span<float>();
  double sum = 0, count = 0;
  for (size_t i = 0; i < valid.size(); ++i) {
    if (valid[i] != 0) sum += rewards[i], ++count;
  }
  return count > 0 ? sum / count : 0;
}

}  // namespace hexad::algorithm
