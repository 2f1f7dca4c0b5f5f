#include "core/algorithm/advantage/advantage.hpp"

#include <doctest/doctest.h>

#include <set>

#include "core/algorithm/advantage/baseline.hpp"
#include "lib/base/error.hpp"
#include "tests/support/golden.hpp"

using namespace hexad;
using namespace hexad::algorithm;
using golden::Json;
using Floats = std::vector<float>;

namespace {

Floats floats(const Json& inputs, const std::string& name) {
  if (!inputs.contains(name)) return {};
  const golden::Tensor tensor = golden::tensor(inputs.at(name));
  return {tensor.data.begin(), tensor.data.end()};
}

// Rows of a [B, S] tensor of prompt tokens -> group indices.
std::vector<int64_t> groups(const Json& tensor) {
  const auto shape = tensor.at("shape").get<std::vector<int64_t>>();
  const auto ids = tensor.at("data").get<std::vector<int64_t>>();
  std::vector<std::span<const int64_t>> rows;
  for (int64_t row = 0; row < shape[0]; ++row) rows.push_back(std::span(ids).subspan(row * shape[1], shape[1]));
  return group_by_prompt(rows);
}

std::vector<double> doubles(const Floats& values) { return {values.begin(), values.end()}; }

void check_tensor(const Floats& got, const Json& want, double relative, double absolute) {
  golden::check_close(doubles(got), golden::tensor(want).data, relative, absolute);
}

// `large` and `small` rewards lose digits in fp32 upstream.
double std_tolerance(const std::string& name) {
  const bool rough = name.find("/large") != std::string::npos || name.find("/small") != std::string::npos;
  return rough ? 1e-2 : 1e-3;
}

void check_baseline(const Json& test_case) {
  const Json& inputs = test_case.at("inputs");
  const BaselineStd got =
      baseline_and_std(groups(inputs.at("prompts")), floats(inputs, "rewards"), floats(inputs, "valid_mask"),
                       test_case.at("config").at("leave_one_out_baseline"), floats(inputs, "std_rewards"));
  check_tensor(got.baseline, test_case.at("expected").at("baseline"), 1e-5, 1e-6);
  check_tensor(got.std, test_case.at("expected").at("std"), std_tolerance(test_case.at("name")), 1e-5);
}

void check_clip(const Json& test_case) {
  Floats advantages = floats(test_case.at("inputs"), "advantages");
  const Json& grpo = test_case.at("config").at("grpo");
  const auto bound = [&](const char* key) {
    const Json value = grpo.value(key, Json());
    return value.is_null() ? std::nullopt : std::optional<double>(golden::number(value));
  };
  clip_advantages(advantages, bound("advantage_clip_low"), bound("advantage_clip_high"));
  check_tensor(advantages, test_case.at("expected").at("advantages"), 1e-7, 0);
}

AdvantageOptions options_of(const Json& config) {
  const Json& estimator = config.at("adv_estimator");
  const auto optional = [&](const char* key) {
    return estimator.value(key, Json()).is_null() ? std::nullopt
                                                  : std::optional<double>(estimator.at(key).get<double>());
  };
  AdvantageOptions options;
  options.estimator = estimator_named(estimator.at("name").get<std::string>());
  options.normalize_rewards = estimator.value("normalize_rewards", true);
  options.use_leave_one_out_baseline = estimator.value("use_leave_one_out_baseline", true);
  if (estimator.contains("reward_weights") && !estimator.at("reward_weights").is_null()) {
    options.reward_weights = estimator.at("reward_weights").get<std::vector<double>>();
  }
  options.minus_baseline = estimator.value("minus_baseline", true);
  options.normalize_advantages = estimator.value("normalize_advantages", true);
  options.gae_lambda = estimator.value("gae_lambda", 0.95);
  options.gae_gamma = estimator.value("gae_gamma", 1.0);
  options.gae_lambda_value = optional("gae_lambda_value");
  options.gae_lambda_policy = optional("gae_lambda_policy");
  options.length_adaptive_alpha = estimator.value("length_adaptive_alpha", 0.0);
  if (config.contains("loss_fn")) {
    const Json& loss = config.at("loss_fn");
    options.use_kl_in_reward = loss.value("use_kl_in_reward", false);
    options.kl_coefficient = loss.value("reference_policy_kl_penalty", 0.01);
    options.kl_type = kl_type_named(loss.value("reference_policy_kl_type", "k3"));
  }
  return options;
}

Floats first_of(const Floats& a, const Floats& b) { return a.empty() ? b : a; }

Advantages estimate(const Json& test_case) {
  const Json& inputs = test_case.at("inputs");
  const auto shape = inputs.at("mask").at("shape").get<std::vector<int64_t>>();
  std::vector<int64_t> cu_seqlens;
  for (int64_t row = 0; row <= shape[0]; ++row) cu_seqlens.push_back(row * shape[1]);
  const std::vector<int64_t> group_of =
      inputs.contains("prompt_ids") ? groups(inputs.at("prompt_ids")) : std::vector<int64_t>();
  const Floats rewards = floats(inputs, "rewards"), mask = floats(inputs, "mask"), valid = floats(inputs, "valid_mask");
  const Floats logprobs = first_of(first_of(floats(inputs, "logprobs"), floats(inputs, "logprobs_policy")),
                                   floats(inputs, "prev_logprobs"));
  const Floats reference = first_of(floats(inputs, "reference_logprobs"), floats(inputs, "logprobs_reference"));
  const Floats values = floats(inputs, "values"), teacher = floats(inputs, "teacher_logprobs");
  std::map<std::string, Floats> components;
  if (inputs.contains("rewards_by_name")) {
    for (const auto& [name, tensor] : inputs.at("rewards_by_name").items()) {
      components[name] = floats(inputs.at("rewards_by_name"), name);
    }
  }
  AdvantageInput input{cu_seqlens, group_of, rewards, valid, mask, logprobs, reference, values, teacher, {}};
  for (const auto& [name, component] : components) input.components[name] = component;
  return estimate_advantages(options_of(test_case.at("config")), input);
}

void check_estimator(const Json& test_case) {
  const Json& want = test_case.at("expected");
  if (want.contains("error")) {
    CHECK_THROWS_AS(estimate(test_case), Error);
    return;
  }
  const Advantages got = estimate(test_case);
  const bool divides_by_std = golden::prefix(test_case) == "grpo" || golden::prefix(test_case) == "gdpo";
  check_tensor(got.advantages, want.at("advantages"), divides_by_std ? 1e-3 : 1e-4, 1e-5);
  if (want.contains("returns") && !want.at("returns").is_null())
    check_tensor(got.returns, want.at("returns"), 1e-5, 1e-6);
  if (want.contains("metrics")) {
    for (const auto& [name, value] : want.at("metrics").items()) {
      REQUIRE(got.metrics.contains(name));
      golden::check_close({got.metrics.at(name)}, {golden::number(value)}, 1e-5, 1e-6);
    }
  }
}

// The prefix of a case is the estimator's name, but for two.
bool is_known(const Json& test_case) {
  static const std::set<std::string> kinds = {"baseline_std",        "clip",       "grpo", "gdpo",
                                              "reinforce_plus_plus", "raw_reward", "gae",  "opd"};
  return kinds.contains(golden::prefix(test_case));  // "kl" is of kl_test.cpp
}

void check_case(const Json& test_case) {
  if (golden::prefix(test_case) == "baseline_std") return check_baseline(test_case);
  if (golden::prefix(test_case) == "clip") return check_clip(test_case);
  check_estimator(test_case);
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("advantages") {
    golden::for_each_case("advantages", check_case, is_known);
    if (golden::has("ppo")) golden::for_each_case("ppo", check_case, is_known);  // its "gae"
  }
}

TEST_CASE("equal rewards have no spread, whatever their size") {
  const std::vector<int64_t> group_of(7, 0);
  const Floats valid(7, 1.0f);
  for (float reward : {0.1f, 1e-6f, 12345.678f}) {
    for (bool leave_one_out : {true, false}) {
      const BaselineStd got = baseline_and_std(group_of, Floats(7, reward), valid, leave_one_out);
      for (float std : got.std) CHECK(std == 0.0f);
      for (float baseline : got.baseline) CHECK(baseline == doctest::Approx(reward));
    }
  }
}

TEST_CASE("packed samples of different lengths get their own advantage") {
  const std::vector<int64_t> cu_seqlens = {0, 2, 2, 5}, group_of = {0, 0, 0};
  const Floats rewards = {1, 0, 0}, mask = {0, 1, 0, 1, 1};
  AdvantageInput input;
  input.cu_seqlens = cu_seqlens;
  input.group_of = group_of;
  input.rewards = rewards;
  input.mask = mask;
  AdvantageOptions options;
  options.normalize_rewards = false;
  CHECK(estimate_advantages(options, input).advantages == Floats{1, 1, -0.5, -0.5, -0.5});
}

TEST_CASE("identical prompts share a group, others do not") {
  const std::vector<int64_t> a = {1, 2}, b = {1, 2, 3}, c = {1, 2};
  const std::vector<std::span<const int64_t>> prompts = {a, b, c};
  CHECK(group_by_prompt(prompts) == std::vector<int64_t>{0, 1, 0});
}

TEST_CASE("estimator errors") {
  CHECK_THROWS_WITH_AS(estimator_named("grop"), doctest::Contains("did you mean 'grpo'?"), Error);
  const std::vector<int64_t> cu_seqlens = {0, 2};
  const Floats mask = {1, 1};
  AdvantageInput input;
  input.cu_seqlens = cu_seqlens;
  input.mask = mask;
  CHECK_THROWS_WITH_AS(estimate_advantages({}, input), doctest::Contains("rewards has 0 elements, want 1"), Error);
}
