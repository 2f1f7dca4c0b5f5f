// Options of the advantage estimators where two of them meet, against the formulas written down plainly in double
// precision; also where some samples count in no moments of rewards.
#include "core/algorithm/advantage/advantage.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "tests/support/golden.hpp"

using namespace hexad::algorithm;
using Doubles = std::vector<double>;
using Floats = std::vector<float>;

namespace {

// Nine samples in groups of 4, 3 and 2; the last group has equal rewards.
struct Samples {
  std::vector<int64_t> cu_seqlens{0}, group_of{0, 1, 0, 2, 1, 0, 1, 2, 0};
  Floats rewards{1, 0.25f, 0, 0.5f, -1, 0.5f, 0.75f, 0.5f, 0}, style{0, 1, 0.5f, 1, 0, 0, 1, 1, 1};
  Floats valid, mask, logprobs, reference, values;
  std::vector<bool> counts;

  explicit Samples(bool some_invalid) {
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    for (size_t row = 0; row < rewards.size(); ++row) {
      counts.push_back(!some_invalid || (row != 2 && row != 6));
      valid.push_back(counts.back());
      const int64_t length = 2 + static_cast<int64_t>(random() % 5);
      cu_seqlens.push_back(cu_seqlens.back() + length);
      for (int64_t t = 0; t < length; ++t) {
        const bool written = t == length - 1 || random() % 3 != 0;
        mask.push_back(t > 0 && written && counts.back());
        logprobs.push_back(-std::abs(normal(random)));
        reference.push_back(logprobs.back() + 0.4f * normal(random));
        values.push_back(normal(random));
      }
    }
  }
  AdvantageInput input() const {
    AdvantageInput input{cu_seqlens, group_of, rewards, valid, mask, logprobs, reference, values, {}, {}};
    input.components = {{"right", rewards}, {"style", style}};
    return input;
  }
  size_t rows() const { return rewards.size(); }
};

double mean_of(const Doubles& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}
// By n, or by n - 1.
double variance_of(const Doubles& values, bool unbiased) {
  const double mean = mean_of(values), count = static_cast<double>(values.size()) - unbiased;
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return count > 0 ? sum / count : 0;
}

double relative(const AdvantageOptions& options, const Samples& samples, const Floats& rewards, size_t row) {
  Doubles group, others;
  for (size_t other = 0; other < samples.rows(); ++other) {
    if (samples.group_of[other] != samples.group_of[row] || !samples.counts[other]) continue;
    group.push_back(rewards[other]);
    if (other != row) others.push_back(rewards[other]);
  }
  if (group.size() < 2) return 0;
  const Doubles& base = options.use_leave_one_out_baseline ? others : group;
  const double advantage = rewards[row] - mean_of(base), std = std::sqrt(variance_of(base, true));
  return options.normalize_rewards && std > 1e-9 ? advantage / (std + 1e-6) : advantage;
}

double kl_of(KlType type, double d) {
  return type == KlType::k1 ? -d : type == KlType::k2 ? d * d / 2 : std::exp(d) - 1 - d;
}

// One advantage for all tokens of a row.
Doubles spread(const Samples& samples, const std::function<double(size_t row)>& of_row) {
  Doubles tokens;
  for (size_t row = 0; row < samples.rows(); ++row)
    tokens.insert(tokens.end(), static_cast<size_t>(samples.cu_seqlens[row + 1] - samples.cu_seqlens[row]),
                  of_row(row));
  return tokens;
}

// (x - mean) / sqrt(variance) over tokens that count, with `least` as the smallest variance, or added to it.
void whiten(const Samples& samples, Doubles& tokens, bool unbiased) {
  Doubles counted;
  for (size_t t = 0; t < tokens.size(); ++t)
    if (samples.mask[t] != 0) counted.push_back(tokens[t]);
  const double mean = mean_of(counted), variance = variance_of(counted, unbiased);
  const double std = std::sqrt(unbiased ? variance + 1e-8 : std::max(variance, 1e-8));
  for (double& token : tokens) token = (token - mean) / std;
}

Doubles grpo(const AdvantageOptions& options, const Samples& samples) {
  return spread(samples, [&](size_t row) { return relative(options, samples, samples.rewards, row); });
}

Doubles gdpo(const AdvantageOptions& options, const Samples& samples) {
  const Doubles weights = options.reward_weights.empty() ? Doubles{1, 1} : options.reward_weights;
  const auto total = [&](size_t row) {
    return weights[0] * relative(options, samples, samples.rewards, row) +
           weights[1] * relative(options, samples, samples.style, row);
  };
  Doubles counted;
  for (size_t row = 0; row < samples.rows(); ++row)
    if (samples.counts[row]) counted.push_back(total(row));
  return spread(samples,
                [&](size_t row) { return (total(row) - mean_of(counted)) / std::sqrt(variance_of(counted, true)); });
}

Doubles reinforce(const AdvantageOptions& options, const Samples& samples) {
  AdvantageOptions of_group;
  of_group.normalize_rewards = of_group.use_leave_one_out_baseline = false;
  Doubles tokens = spread(samples, [&](size_t row) {
    return options.minus_baseline ? relative(of_group, samples, samples.rewards, row) : double{samples.rewards[row]};
  });
  for (size_t t = 0; t < tokens.size() && options.use_kl_in_reward; ++t)
    tokens[t] -= options.kl_coefficient * kl_of(options.kl_type, samples.reference[t] - samples.logprobs[t]);
  whiten(samples, tokens, /*unbiased=*/false);
  return tokens;
}

Doubles raw_reward(const AdvantageOptions& options, const Samples& samples) {
  Doubles tokens = spread(samples, [&](size_t row) { return double{samples.rewards[row]}; });
  if (options.normalize_advantages) whiten(samples, tokens, /*unbiased=*/false);
  return tokens;
}

// A = sum over the tokens that were written from t on of (gamma lambda)^k delta, and of returns the same with the other
// lambda, plus V.
Doubles gae(const AdvantageOptions& options, const Samples& samples, bool of_returns) {
  Doubles tokens(samples.mask.size());
  for (size_t row = 0; row < samples.rows(); ++row) {
    std::vector<size_t> written;
    const auto begin = static_cast<size_t>(samples.cu_seqlens[row]),
               end = static_cast<size_t>(samples.cu_seqlens[row + 1]);
    for (size_t t = begin; t < end; ++t)
      if (samples.mask[t] != 0) written.push_back(t);
    const auto length = static_cast<double>(written.size());
    double lambda = (of_returns ? options.gae_lambda_value : options.gae_lambda_policy).value_or(options.gae_lambda);
    if (!of_returns && options.length_adaptive_alpha > 0)
      lambda = std::clamp(1 - 1 / std::max(options.length_adaptive_alpha * length, 1.0), 0.0, 1.0);
    for (size_t i = 0; i < written.size(); ++i) {
      double advantage = 0, factor = 1;
      for (size_t k = i; k < written.size(); ++k, factor *= options.gae_gamma * lambda) {
        const size_t t = written[k];
        const bool last = k + 1 == written.size();
        double reward = last ? samples.rewards[row] : 0;
        if (options.use_kl_in_reward)
          reward -= options.kl_coefficient * kl_of(options.kl_type, samples.reference[t] - samples.logprobs[t]);
        const double next = last ? 0 : samples.values[written[k + 1]];
        advantage += factor * (reward + options.gae_gamma * next - samples.values[t]);
      }
      tokens[written[i]] = of_returns ? advantage + samples.values[written[i]] : advantage;
    }
  }
  if (!of_returns && options.normalize_advantages) whiten(samples, tokens, /*unbiased=*/true);
  return tokens;
}

using Estimate = std::function<Doubles(const AdvantageOptions&, const Samples&)>;
using Setting = std::pair<const char*, std::function<void(AdvantageOptions&)>>;

// Compares tokens of samples that count, masked ones only where `masked_too`.
void compare(const Samples& samples, const Floats& got, const Doubles& want, bool masked_too) {
  REQUIRE(got.size() == want.size());
  Doubles mine, theirs;
  for (size_t row = 0; row < samples.rows(); ++row) {
    for (auto t = static_cast<size_t>(samples.cu_seqlens[row]); t < static_cast<size_t>(samples.cu_seqlens[row + 1]);
         ++t) {
      if (!samples.counts[row] || !(masked_too || samples.mask[t] != 0)) continue;
      mine.push_back(got[t]), theirs.push_back(want[t]);
    }
  }
  golden::check_close(mine, theirs, 2e-5, 1e-6);
}

// Each setting with each other one, over samples of which all or some count.
void check_pairs(Estimator estimator, const std::vector<Setting>& settings, const Estimate& estimate) {
  for (const bool some_invalid : {false, true}) {
    const Samples samples(some_invalid);
    for (const auto& [first, set_first] : settings) {
      for (const auto& [second, set_second] : settings) {
        INFO(first << " with " << second << ", some invalid: " << some_invalid);
        AdvantageOptions options;
        options.estimator = estimator;
        options.kl_coefficient = 0.2;
        set_first(options), set_second(options);
        const Advantages got = estimate_advantages(options, samples.input());
        compare(samples, got.advantages, estimate(options, samples), estimator != Estimator::gae);
        if (estimator == Estimator::gae) compare(samples, got.returns, gae(options, samples, true), false);
      }
    }
  }
}

const Setting kNothing = {"defaults", [](AdvantageOptions&) {}};
const Setting kNotNormalized = {"normalize_rewards: false", [](auto& o) { o.normalize_rewards = false; }};
const Setting kGroupMean = {"leave one out: false", [](auto& o) { o.use_leave_one_out_baseline = false; }};
const Setting kKl = {"use_kl_in_reward", [](auto& o) { o.use_kl_in_reward = true; }};
const Setting kK1 = {"k1", [](auto& o) { o.kl_type = KlType::k1; }};
const Setting kK2 = {"k2", [](auto& o) { o.kl_type = KlType::k2; }};
const Setting kRaw = {"normalize_advantages: false", [](auto& o) { o.normalize_advantages = false; }};

}  // namespace

TEST_CASE("grpo and gdpo: every two options together are what the formulas say") {
  check_pairs(Estimator::grpo, {kNothing, kNotNormalized, kGroupMean}, grpo);
  const Setting weights = {"reward_weights", [](auto& o) { o.reward_weights = {0.25, -2}; }};
  check_pairs(Estimator::gdpo, {kNothing, kNotNormalized, kGroupMean, weights}, gdpo);
}

TEST_CASE("reinforce_plus_plus and raw_reward: every two options together are what the formulas say") {
  const Setting raw = {"minus_baseline: false", [](auto& o) { o.minus_baseline = false; }};
  const Setting kl_k1 = {"KL k1", [](auto& o) { o.use_kl_in_reward = true, o.kl_type = KlType::k1; }};
  const Setting kl_k2 = {"KL k2", [](auto& o) { o.use_kl_in_reward = true, o.kl_type = KlType::k2; }};
  check_pairs(Estimator::reinforce_plus_plus, {kNothing, raw, kKl, kK1, kK2, kl_k1, kl_k2}, reinforce);
  check_pairs(Estimator::raw_reward, {kNothing, kRaw}, raw_reward);
}

TEST_CASE("gae: every two options together are what the formula says") {
  const std::vector<Setting> settings = {kNothing,
                                         kRaw,
                                         kKl,
                                         kK1,
                                         kK2,
                                         {"gae_gamma", [](auto& o) { o.gae_gamma = 0.9; }},
                                         {"gae_lambda", [](auto& o) { o.gae_lambda = 0.5; }},
                                         {"gae_lambda_value", [](auto& o) { o.gae_lambda_value = 0.2; }},
                                         {"gae_lambda_policy", [](auto& o) { o.gae_lambda_policy = 0.7; }},
                                         {"length_adaptive_alpha", [](auto& o) { o.length_adaptive_alpha = 0.6; }}};
  check_pairs(Estimator::gae, settings, [](const auto& options, const auto& s) { return gae(options, s, false); });
}
