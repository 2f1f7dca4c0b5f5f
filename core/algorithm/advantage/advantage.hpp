// Advantage estimators: from a reward per sample to an advantage per token.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/algorithm/advantage/kl.hpp"

namespace hexad::algorithm {

enum class Estimator : uint8_t { grpo, gdpo, reinforce_plus_plus, raw_reward, gae, opd };
Estimator estimator_named(std::string_view name);  // throws Error(config) that lists the names

// grpo.adv_estimator.* (ppo.adv_estimator.* for gae and raw_reward) and what they read of loss_fn.*.
struct AdvantageOptions {
  Estimator estimator = Estimator::grpo;
  bool normalize_rewards = true;           // grpo, gdpo: divide by the std where it is not 0
  bool use_leave_one_out_baseline = true;  // grpo, gdpo
  std::vector<double> reward_weights;      // gdpo, per component in order of name; empty: all 1
  bool minus_baseline = true;              // reinforce_plus_plus
  bool normalize_advantages = true;        // raw_reward, gae: whiten over the mask
  double gae_lambda = 0.95;
  double gae_gamma = 1.0;
  std::optional<double> gae_lambda_value;   // returns; absent: gae_lambda
  std::optional<double> gae_lambda_policy;  // advantages; absent: gae_lambda
  double length_adaptive_alpha = 0;         // > 0: lambda of the policy = 1 - 1 / max(alpha * response tokens, 1)
  bool use_kl_in_reward = false;            // reinforce_plus_plus, gae: subtract kl_coefficient * KL per token
  double kl_coefficient = 0;                // loss_fn.reference_policy_kl_penalty
  KlType kl_type = KlType::k3;
};

// B samples, T packed tokens. Spans that an estimator does not read may be empty; one that it needs and that has the
// wrong length is an Error(data).
struct AdvantageInput {
  std::span<const int64_t> cu_seqlens;  // [B+1]
  std::span<const int64_t> group_of;    // [B], see baseline.hpp; grpo, gdpo, reinforce_plus_plus
  std::span<const float> rewards;       // [B]; all but gdpo and opd
  std::span<const float> valid;         // [B] 0 or 1: does the sample count in moments of rewards; empty: all do
  std::span<const float> mask;          // [T] 0 or 1: token_mask * sample_mask
  std::span<const float> logprobs;      // [T] of the policy before the update; for KL in the reward, and opd
  std::span<const float> reference;     // [T]; for KL in the reward
  std::span<const float> values;        // [T]; gae
  std::span<const float> teacher;       // [T] log-probs of the teacher; opd
  std::map<std::string, std::span<const float>> components;  // name -> [B]; gdpo: the parts of the reward
};

struct Advantages {
  std::vector<float> advantages;          // [T]; grpo, gdpo and raw_reward fill masked tokens too
  std::vector<float> returns;             // [T]; gae only
  std::map<std::string, double> metrics;  // opd only
};

// Formulas: docs of NeMo-RL's advantage_estimator.py, with its biased variance (reinforce_plus_plus, raw_reward),
// unbiased one (gae, gdpo) and epsilons.
Advantages estimate_advantages(const AdvantageOptions& options, const AdvantageInput& input);

// grpo.advantage_clip_low / advantage_clip_high, in place.
void clip_advantages(std::span<float> advantages, std::optional<double> low, std::optional<double> high);

}  // namespace hexad::algorithm
