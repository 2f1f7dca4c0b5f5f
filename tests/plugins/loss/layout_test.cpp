// No loss, gradient or metric of any loss depends on how the rows of a global batch are padded, packed or dealt out to
// micro-batches and ranks, whatever the options.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "lib/base/error.hpp"
#include "tests/plugins/loss/loss_case.hpp"

namespace {

using namespace loss_case;
using Rows = std::vector<size_t>;

// Twelve rows, six pairs; rewards of both signs, rows of one token, and a pair that is out of the loss.
Packed random_batch() {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  Packed batch;
  double positive = 0;
  for (const int64_t length : {4, 1, 9, 3, 6, 6, 2, 5, 11, 3, 1, 7}) {
    const size_t row = batch.unit_id.size();
    const float counts = row / 2 == 3 ? 0 : 1, reward = normal(random);
    batch.cu_seqlens.push_back(batch.cu_seqlens.back() + length);
    batch.unit_id.push_back(static_cast<int64_t>(row / 2));
    batch.samples["sample_mask"].push_back(counts);
    batch.samples["rewards"].push_back(reward);
    batch.samples["sequence_scores"].push_back(normal(random));
    batch.global_valid_sequences += counts;
    for (int64_t t = 0; t < length; ++t) {
      const float logprob = t == 0 ? 0 : -std::abs(normal(random)) - 0.1f, mask = t > 0 && random() % 5 != 0;
      batch.tokens["logprobs"].push_back(logprob);
      for (const char* name : {"prev_logprobs", "generation_logprobs", "reference_policy_logprobs"})
        batch.tokens[name].push_back(t == 0 ? 0 : logprob + 0.2f * normal(random));
      for (const char* name : {"advantages", "token_values", "values", "returns"})
        batch.tokens[name].push_back(normal(random));
      batch.tokens["token_mask"].push_back(mask);
      batch.global_valid_tokens += mask * counts;
      positive += reward > 0 ? mask * counts : 0;
    }
  }
  batch.samples["global_positive_tokens"].assign(batch.unit_id.size(), static_cast<float>(positive));
  return batch;
}

// These rows, under the global counts of all.
Packed part(const Packed& whole, const Rows& rows) {
  Packed result;
  result.global_valid_tokens = whole.global_valid_tokens;
  result.global_valid_sequences = whole.global_valid_sequences;
  for (const size_t row : rows) {
    const int64_t begin = whole.cu_seqlens[row], end = whole.cu_seqlens[row + 1];
    result.cu_seqlens.push_back(result.cu_seqlens.back() + end - begin);
    result.unit_id.push_back(whole.unit_id[row]);
    for (const auto& [name, values] : whole.samples) result.samples[name].push_back(values[row]);
    for (const auto& [name, values] : whole.tokens)
      result.tokens[name].insert(result.tokens[name].end(), values.begin() + begin, values.begin() + end);
  }
  return result;
}

// The gradient of each row, by the row of the whole batch.
std::map<size_t, std::vector<float>> by_row(const Packed& batch, const Rows& rows, const std::vector<float>& grad) {
  std::map<size_t, std::vector<float>> result;
  const bool of_tokens = static_cast<int64_t>(grad.size()) == batch.num_tokens();
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto begin = of_tokens ? batch.cu_seqlens[i] : static_cast<int64_t>(i),
               end = of_tokens ? batch.cu_seqlens[i + 1] : begin + 1;
    result[rows[i]] = {grad.begin() + begin, grad.begin() + end};
  }
  return result;
}

struct Outcome {
  double loss = 0;
  hexad::plugin::MetricSum metrics;
  std::map<size_t, std::vector<float>> grads;
};

// What micro-batches of these rows come to together.
Outcome outcome(LossPlugin& loss, const Packed& whole, const std::string& input, const std::vector<Rows>& micro_batches,
                bool padded) {
  Outcome outcome;
  for (const Rows& rows : micro_batches) {
    Packed batch = part(whole, rows);
    if (padded) batch.padded_length = 11;
    const Result result = compute(loss, batch);
    outcome.loss += result.loss;
    outcome.metrics.add(result.observed);
    outcome.grads.merge(by_row(batch, rows, result.grads.at(input)));
  }
  return outcome;
}

void check_same(const Outcome& got, const Outcome& want) {
  CHECK(got.loss == doctest::Approx(want.loss).epsilon(1e-9));
  const auto metrics = want.metrics.values();
  REQUIRE(got.metrics.values().size() == metrics.size());
  for (const auto& [name, value] : got.metrics.values()) {
    INFO("metric " << name);
    golden::check_close({value}, {metrics.at(name)}, 1e-9, 1e-12);
  }
  REQUIRE(got.grads.size() == want.grads.size());
  for (const auto& [row, grad] : got.grads) {
    INFO("gradient of row " << row);
    const std::vector<float>& wanted = want.grads.at(row);
    golden::check_close({grad.begin(), grad.end()}, {wanted.begin(), wanted.end()}, 1e-6, 1e-9);
  }
}

// `input`: the one that the loss differentiates.
void check_layouts(const std::string& plugin, const Json& section, const std::string& input) {
  INFO(plugin << " " << section.dump());
  Packed whole = random_batch();
  for (const char* name : {"logprobs", "token_values"})
    if (name != input) whole.tokens.erase(name);
  if (input != "sequence_scores") whole.samples.erase("sequence_scores");
  const auto loss = make_loss(plugin, section);
  Rows all(whole.unit_id.size());
  std::iota(all.begin(), all.end(), 0);
  const Outcome want = outcome(*loss, whole, input, {all}, /*padded=*/false);
  const std::vector<Rows> pairs = {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}},
                          uneven = {{10, 11, 0, 1}, {8, 9, 6, 7, 4, 5}, {2, 3}};
  for (const bool padded : {false, true}) {
    CAPTURE(padded);
    for (const auto& micro_batches : {std::vector<Rows>{all}, pairs, uneven})
      check_same(outcome(*loss, whole, input, micro_batches, padded), want);
  }
}

const std::vector<Json> kClippedPg = {Json::object(),
                                      {{"reference_policy_kl_penalty", 0.3}},
                                      {{"reference_policy_kl_type", "k1"}},
                                      {{"ratio_clip_c", 1.2}},
                                      {{"use_on_policy_kl_approximation", true}},
                                      {{"token_level_loss", false}},
                                      {{"token_level_loss", false}, {"sequence_level_importance_ratios", true}},
                                      {{"disable_ppo_ratio", true}},
                                      {{"force_on_policy_ratio", true}},
                                      {{"use_cispo", true}},
                                      {{"use_importance_sampling_correction", true}},
                                      {{"use_importance_sampling_correction", true},
                                       {"truncated_importance_sampling_type", "tis"},
                                       {"truncated_importance_sampling_ratio", 1.05}},
                                      {{"use_importance_sampling_correction", true},
                                       {"truncated_importance_sampling_type", "icepop"},
                                       {"truncated_importance_sampling_ratio", 1.1},
                                       {"truncated_importance_sampling_ratio_min", 0.9}},
                                      {{"use_importance_sampling_correction", true},
                                       {"truncated_importance_sampling_type", "seq-mask-tis"},
                                       {"truncated_importance_sampling_ratio", 1.05},
                                       {"truncated_importance_sampling_ratio_min", 0.95}},
                                      {{"positive_example_nll_weight", 0.4}}};

}  // namespace

TEST_CASE("clipped_pg does not depend on the layout, with any two options") {
  int checked = 0;
  for (const Json& section : alone_and_in_pairs(kClippedPg)) {
    try {
      make_loss("clipped_pg", section);
    } catch (const hexad::Error&) {
      continue;  // a pair that does not go together
    }
    check_layouts("clipped_pg", section, "logprobs");
    ++checked;
  }
  CHECK(checked > 90);
}

TEST_CASE("nll, dpo, preference and value do not depend on the layout") {
  check_layouts("nll", Json::object(), "logprobs");
  check_layouts("preference", Json::object(), "sequence_scores");
  for (const Json& section : alone_and_in_pairs({Json::object(),
                                                 {{"preference_average_log_probs", true}},
                                                 {{"sft_loss_weight", 0.7}},
                                                 {{"sft_average_log_probs", true}}}))
    check_layouts("dpo", section, "logprobs");
  for (const Json& section : alone_and_in_pairs({{{"scale", 0.5}}, {{"cliprange", 0.3}}}))
    check_layouts("value", section, "token_values");
}

TEST_CASE("the likelihood of positive samples is a mean over their tokens in the whole global batch") {
  Packed batch;
  batch.cu_seqlens = {0, 3, 5, 8};
  for (const char* name : {"logprobs", "prev_logprobs", "generation_logprobs"})
    batch.tokens[name] = {0, -1, -2, 0, -4, 0, -8, -16};
  batch.tokens["token_mask"] = {0, 1, 1, 0, 1, 0, 1, 0};
  batch.tokens["advantages"].assign(8, 0);
  batch.samples = {{"sample_mask", {1, 1, 1}}, {"rewards", {0.5f, -1, 1}}, {"global_positive_tokens", {10, 10, 10}}};
  batch.global_valid_tokens = 100, batch.global_valid_sequences = 30;
  const auto loss =
      make_loss("clipped_pg", {{"positive_example_nll_weight", 0.5}, {"reference_policy_kl_penalty", 0.0}});
  const Result got = compute(*loss, batch);
  CHECK(got.metrics.at("positive_nll_loss") == doctest::Approx((1 + 2 + 8) / 10.0));
  CHECK(got.loss == doctest::Approx(0.5 * 1.1));
  const std::vector<float> pull = {0, -0.05f, -0.05f, 0, 0, 0, -0.05f, 0};
  for (size_t t = 0; t < pull.size(); ++t) CHECK(got.grads.at("logprobs")[t] == doctest::Approx(pull[t]));
  // Without what the mean is over there is no such term, and no silent 0.
  for (const char* name : {"rewards", "global_positive_tokens"}) {
    Packed without = batch;
    without.samples.erase(name);
    CHECK_THROWS_WITH_AS(compute(*loss, without), doctest::Contains(("needs '" + std::string(name) + "'").c_str()),
                         hexad::Error);
  }
}
