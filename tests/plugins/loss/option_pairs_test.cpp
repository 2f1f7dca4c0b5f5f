// Options of dpo and value where two of them meet, and the masks of nll and preference: losses and metrics against the
// formulas written down plainly in double precision, gradients against central differences of those. (Pairs of
// clipped_pg's options are golden vectors.)
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "tests/plugins/loss/loss_case.hpp"

namespace {

using namespace loss_case;
using Doubles = std::vector<double>;
using Told = std::map<std::string, double>;

// A loss as a function of its differentiable input; tells its metrics where somebody listens.
using Formula = std::function<double(const Doubles& input, Told* metrics)>;

Doubles central_differences(const Formula& formula, Doubles at) {
  constexpr double kStep = 1e-5;
  Doubles gradient;
  for (double& value : at) {
    const double middle = value;
    value = middle + kStep;
    const double above = formula(at, nullptr);
    value = middle - kStep;
    const double below = formula(at, nullptr);
    value = middle;
    gradient.push_back((above - below) / (2 * kStep));
  }
  return gradient;
}

Doubles doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

// Four pairs of rows; one of a single token, which has no log-prob. `masked`: a pair that is out of the loss, and a row
// without a token that counts.
Packed random_batch(bool masked) {
  std::mt19937 random(masked ? 3 : 4);
  std::normal_distribution<float> normal;
  Packed batch;
  for (const int64_t length : {3, 5, 1, 4, 6, 2, 7, 3}) {
    const size_t row = batch.samples["sample_mask"].size();
    batch.cu_seqlens.push_back(batch.cu_seqlens.back() + length);
    batch.unit_id.push_back(static_cast<int64_t>(row / 2));
    batch.samples["sample_mask"].push_back(masked && row / 2 == 2 ? 0.0f : 1.0f);
    batch.samples["sequence_scores"].push_back(normal(random));
    for (int64_t t = 0; t < length; ++t) {
      const float logprob = t == 0 ? 0 : -std::abs(normal(random)) - 0.1f;
      const bool counts = t > 0 && !(masked && row == 1) && random() % 4 != 0;
      batch.tokens["logprobs"].push_back(logprob);
      batch.tokens["reference_policy_logprobs"].push_back(t == 0 ? 0 : logprob + 0.5f * normal(random));
      batch.tokens["token_mask"].push_back(counts);
      batch.tokens["token_values"].push_back(normal(random));
      batch.tokens["values"].push_back(normal(random));
      batch.tokens["returns"].push_back(normal(random));
    }
  }
  batch.global_valid_tokens = 31.5;  // of this micro-batch and others
  batch.global_valid_sequences = 9;
  return batch;
}

// Without the inputs of other losses, whose gradients would be asked for.
Packed only(Packed batch, const std::string& differentiable) {
  for (const char* name : {"logprobs", "token_values"})
    if (name != differentiable) batch.tokens.erase(name);
  if (differentiable != "sequence_scores") batch.samples.erase("sequence_scores");
  return batch;
}

void check(const std::string& plugin, const Json& section, Packed batch, const std::string& input,
           const Formula& formula) {
  INFO(plugin << " " << section.dump());
  const Doubles at = doubles(input == "sequence_scores" ? batch.samples.at(input) : batch.tokens.at(input));
  Told metrics;
  const double loss = formula(at, &metrics);
  const auto instance = make_loss(plugin, section);
  const Result got = compute(*instance, batch);
  CHECK(got.loss == doctest::Approx(loss).epsilon(1e-9));
  REQUIRE(got.metrics.size() == metrics.size());
  for (const auto& [name, value] : metrics) {
    INFO("metric " << name);
    golden::check_close({got.metrics.at(name)}, {value}, 1e-9, 1e-12);
  }
  golden::check_close(doubles(got.grads.at(input)), central_differences(formula, at), 1e-5, 1e-8);
}

struct Span {
  size_t begin, end;  // of the tokens of a row that have a log-prob
};
Span tokens_of(const Packed& batch, size_t row) {
  const auto begin = static_cast<size_t>(batch.cu_seqlens[row]), end = static_cast<size_t>(batch.cu_seqlens[row + 1]);
  return {std::min(begin + 1, end), end};
}

// Adds what a pair of rewards tells; returns -log sigmoid(beta * (chosen - rejected)) * weight.
double pair_loss(double chosen, double rejected, double beta, double weight, Told& told) {
  told["accuracy"] += chosen > rejected ? weight : 0;
  told["rewards_chosen_mean"] += chosen * weight;
  told["rewards_rejected_mean"] += rejected * weight;
  return std::log(1 + std::exp(-beta * (chosen - rejected))) * weight;
}

// Rafailov et al. 2023 with NeMo-RL's options; both sums over pairs, by the pairs of the global batch.
double dpo(const Json& section, const Packed& batch, const Doubles& logprobs, Told* metrics) {
  const bool mean = section.value("preference_average_log_probs", false);
  const bool sft_mean = section.value("sft_average_log_probs", mean);
  const double beta = section.value("reference_policy_kl_penalty", 0.05),
               preference_weight = section.value("preference_loss_weight", 1.0),
               sft_weight = section.value("sft_loss_weight", 0.0);
  Told told = {{"accuracy", 0}, {"rewards_chosen_mean", 0}, {"rewards_rejected_mean", 0}};
  double preference = 0, sft = 0, rows = 0;
  const auto &mask = batch.tokens.at("token_mask"), &reference = batch.tokens.at("reference_policy_logprobs");
  for (size_t chosen = 0; chosen < batch.unit_id.size(); chosen += 2) {
    const double weight = batch.samples.at("sample_mask")[chosen];
    double rewards[2] = {0, 0}, likelihood = 0, chosen_tokens = 0;
    for (size_t side = 0; side < 2; ++side) {
      double tokens = 0;
      const Span span = tokens_of(batch, chosen + side);
      for (size_t t = span.begin; t < span.end; ++t) {
        rewards[side] += (logprobs[t] - reference[t]) * mask[t];
        likelihood += side == 0 ? logprobs[t] * mask[t] : 0;
        tokens += mask[t];
      }
      if (mean) rewards[side] /= std::max(tokens, 1.0);
      if (side == 0) chosen_tokens = std::max(tokens, 1.0);
    }
    preference += pair_loss(rewards[0], rewards[1], beta, weight, told);
    sft -= (sft_mean ? likelihood / chosen_tokens : likelihood) * weight;
    rows += 2 * weight;
  }
  const double pairs = batch.global_valid_sequences / 2 + 1e-8;
  const double loss = (preference_weight * preference + sft_weight * sft) / pairs;
  if (metrics) {
    for (auto& [name, value] : told) value /= pairs;
    told["loss"] = loss, told["preference_loss"] = preference / pairs, told["num_valid_samples"] = rows / 2;
    told["sft_loss"] = sft_weight == 0 ? 0 : sft / pairs;
    *metrics = told;
  }
  return loss;
}

double preference(const Packed& batch, const Doubles& scores, Told* metrics) {
  Told told = {{"accuracy", 0}, {"rewards_chosen_mean", 0}, {"rewards_rejected_mean", 0}};
  double loss = 0, rows = 0;
  for (size_t chosen = 0; chosen < scores.size(); chosen += 2) {
    const double weight = batch.samples.at("sample_mask")[chosen];
    loss += pair_loss(scores[chosen], scores[chosen + 1], 1, weight, told);
    rows += 2 * weight;
  }
  const double pairs = batch.global_valid_sequences / 2 + 1e-8;
  if (metrics) {
    for (auto& [name, value] : told) value /= pairs;
    told["loss"] = loss / pairs, told["num_valid_samples"] = rows / 2;
    *metrics = told;
  }
  return loss / pairs;
}

double nll(const Packed& batch, const Doubles& logprobs, Told* metrics) {
  double sum = 0, tokens = 0, rows = 0;
  for (size_t row = 0; row < batch.unit_id.size(); ++row) {
    const double counts = batch.samples.at("sample_mask")[row];
    const Span span = tokens_of(batch, row);
    for (size_t t = span.begin; t < span.end; ++t) {
      sum -= logprobs[t] * batch.tokens.at("token_mask")[t] * counts;
      tokens += batch.tokens.at("token_mask")[t] * counts;
    }
    rows += counts;
  }
  const double loss = sum / (batch.global_valid_tokens + 1e-8);
  if (metrics) *metrics = {{"loss", loss}, {"num_unmasked_tokens", tokens}, {"num_valid_samples", rows}};
  return loss;
}

// Schulman et al. 2017; every position has a value, the first too.
double value(const Json& section, const Packed& batch, const Doubles& values, Told* metrics) {
  const double scale = section.value("scale", 1.0), range = section.value("cliprange", 0.0);
  Told told;
  for (const char* name : {"vf_clipfrac", "returns_mean", "values_mean", "returns_sq_mean", "residual_sq_mean"})
    told[name] = 0;
  double sum = 0, least = INFINITY, most = -INFINITY;
  for (size_t row = 0; row < batch.unit_id.size(); ++row) {
    for (auto t = static_cast<size_t>(batch.cu_seqlens[row]); t < static_cast<size_t>(batch.cu_seqlens[row + 1]); ++t) {
      const double counts = batch.samples.at("sample_mask")[row] * batch.tokens.at("token_mask")[t];
      if (counts == 0) continue;
      const double old = batch.tokens.at("values")[t], target = batch.tokens.at("returns")[t];
      const double error = (values[t] - target) * (values[t] - target);
      const double near = std::min(std::max(values[t], old - range), old + range) - target;
      const double clipped = range > 0 ? near * near : 0;
      sum += std::max(error, clipped) / 2 * counts;
      told["vf_clipfrac"] += clipped > error ? counts : 0;
      told["returns_mean"] += target * counts, told["returns_sq_mean"] += target * target * counts;
      told["values_mean"] += values[t] * counts, told["residual_sq_mean"] += error * counts;
      least = std::min(least, values[t]), most = std::max(most, values[t]);
    }
  }
  const double loss = scale * sum / (batch.global_valid_tokens + 1e-8);
  if (metrics) {
    for (auto& [name, of_tokens] : told) of_tokens /= batch.global_valid_tokens + 1e-8;
    told["loss"] = loss, told["values_min"] = least, told["values_max"] = most;
    told["num_valid_samples"] = static_cast<double>(batch.unit_id.size());
    *metrics = told;
  }
  return loss;
}

}  // namespace

TEST_CASE("dpo: every two options together are what the formulas say") {
  const std::vector<Json> options = {Json::object(),
                                     {{"reference_policy_kl_penalty", 0.4}},
                                     {{"preference_average_log_probs", true}},
                                     {{"preference_loss_weight", 0.3}},
                                     {{"sft_loss_weight", 0.7}},
                                     {{"sft_average_log_probs", true}},
                                     {{"sft_average_log_probs", false}}};
  for (const bool masked : {false, true}) {
    const Packed batch = only(random_batch(masked), "logprobs");
    for (const Json& section : alone_and_in_pairs(options))
      check("dpo", section, batch, "logprobs",
            [&](const Doubles& logprobs, Told* metrics) { return dpo(section, batch, logprobs, metrics); });
    Json all = {{"reference_policy_kl_penalty", 0.4},
                {"preference_average_log_probs", true},
                {"preference_loss_weight", 0.3},
                {"sft_loss_weight", 0.7},
                {"sft_average_log_probs", false}};
    check("dpo", all, batch, "logprobs",
          [&](const Doubles& logprobs, Told* metrics) { return dpo(all, batch, logprobs, metrics); });
  }
}

TEST_CASE("value: scale and range together are what the formula says") {
  const std::vector<Json> options = {Json::object(), {{"scale", 0.25}}, {{"cliprange", 0.3}}, {{"cliprange", 2.0}}};
  for (const bool masked : {false, true}) {
    const Packed batch = only(random_batch(masked), "token_values");
    for (const Json& section : alone_and_in_pairs(options))
      check("value", section, batch, "token_values",
            [&](const Doubles& values, Told* metrics) { return value(section, batch, values, metrics); });
  }
}

TEST_CASE("nll and preference are what their formulas say, whatever is masked") {
  for (const bool masked : {false, true}) {
    const Packed tokens = only(random_batch(masked), "logprobs"),
                 scores = only(random_batch(masked), "sequence_scores");
    check("nll", Json::object(), tokens, "logprobs",
          [&](const Doubles& logprobs, Told* metrics) { return nll(tokens, logprobs, metrics); });
    check("preference", Json::object(), scores, "sequence_scores",
          [&](const Doubles& input, Told* metrics) { return preference(scores, input, metrics); });
  }
}
