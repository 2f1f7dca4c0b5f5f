// sampling.json: probabilities and log-probs of vLLM's order of filters, and the normal form of its parameters. Cases
// about things that a hexad_request does not have (penalties, n, min_tokens, logprobs) are not selected.
#include <doctest/doctest.h>
#include <hexad/services.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include "plugins/native/sample/row_kernel.hpp"
#include "plugins/native/sample/sampler.hpp"
#include "tests/support/golden.hpp"

using golden::Json;
using namespace hexad::native;

namespace {

SamplingParams params_of(const Json& config) {
  SamplingParams p;
  if (config.contains("temperature")) p.temperature = golden::number(config["temperature"]);
  if (config.contains("top_p")) p.top_p = golden::number(config["top_p"]);
  if (config.contains("min_p")) p.min_p = golden::number(config["min_p"]);
  if (config.contains("top_k")) p.top_k = config["top_k"].get<int64_t>();
  return p;
}

// Log-probs of the whole row, from the pieces that draw() is made of.
std::vector<double> row_logprobs(const std::vector<float>& logits, const SamplingParams& params) {
  const auto vocab = static_cast<int64_t>(logits.size());
  const float top = largest(logits.data(), vocab);
  std::vector<double> result(logits.size(), -INFINITY);
  if (params.filtered()) {
    const Candidates candidates = filter(logits.data(), vocab, top, params);
    for (size_t i = 0; i < candidates.tokens.size(); ++i) {
      result[candidates.tokens[i]] = std::log(candidates.weights[i] / candidates.total);
    }
    return result;
  }
  const double scale = params.greedy() ? 1.0 : 1.0 / params.temperature;
  double total = 0;
  for (const float logit : logits) total += std::exp((double(logit) - top) * scale);
  for (size_t i = 0; i < logits.size(); ++i) result[i] = (double(logits[i]) - top) * scale - std::log(total);
  return result;
}

// Every token's log-prob by draw() itself: u is moved through the whole distribution.
void check_draws(const std::vector<float>& logits, const SamplingParams& params, const std::vector<double>& want) {
  std::vector<double> mass(logits.size(), 0.0);
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    const Draw d = draw(logits.data(), static_cast<int64_t>(logits.size()), params, (i + 0.5) / kDraws);
    REQUIRE(d.token >= 0);
    mass[d.token] += 1.0 / kDraws;
    CHECK(std::abs(d.logprob - want[d.token]) <= 1e-5 * std::abs(want[d.token]) + 2e-6);
  }
  for (size_t i = 0; i < mass.size(); ++i) CHECK(std::abs(mass[i] - std::exp(want[i])) <= 1.5 / kDraws);
}

void check_distribution(const Json& test_case) {
  const golden::Tensor logits = golden::tensor(test_case["inputs"]["logits"]);
  std::vector<double> want = golden::tensor(test_case["expected"]["vllm_processed_logprobs"]).data;
  const SamplingParams params = normalized(params_of(test_case["config"]));
  const int64_t vocab = logits.shape.back();
  for (size_t begin = 0; begin < logits.data.size(); begin += vocab) {
    const std::vector<float> row(logits.data.begin() + begin, logits.data.begin() + begin + vocab);
    std::vector<double> expected(want.begin() + begin, want.begin() + begin + vocab);
    std::vector<double> got = row_logprobs(row, params);
    // Ties at the border of top-p: which of the equals stays is the sort's business, how many is not.
    if (test_case.contains("fragile")) {
      std::sort(expected.begin(), expected.end());
      std::vector<double> sorted = got;
      std::sort(sorted.begin(), sorted.end());
      golden::check_close(sorted, expected, 1e-5, 2e-6);
    } else {
      golden::check_close(got, expected, 1e-5, 2e-6);
    }
    check_draws(row, params, got);
  }
}

const std::set<std::string> kKnown{"temperature", "top_p", "top_k",          "min_p",
                                   "max_tokens",  "stop",  "stop_token_ids", "seed"};

bool only_known(const Json& config) {
  for (const auto& [key, value] : config.items()) {
    if (!kKnown.contains(key)) return false;
  }
  return true;
}

// Whether our request would be refused; max_tokens and stop are checked when a request is taken (generator.cpp).
bool refused(const Json& config) {
  if (config.contains("max_tokens") && config["max_tokens"].get<int64_t>() < 1) return true;
  if (config.contains("stop") && config["stop"].is_array() && std::ranges::count(config["stop"], Json("")) > 0)
    return true;
  try {
    normalized(params_of(config));
    return false;
  } catch (const hexad::sdk::Error&) {
    return true;
  }
}

void check_params(const Json& test_case) {
  const Json& expected = test_case["expected"];
  REQUIRE(refused(test_case["config"]) == expected.contains("error"));
  if (expected.contains("error")) return;
  const SamplingParams got = normalized(params_of(test_case["config"]));
  CHECK(got.temperature == golden::number(expected["temperature"]));
  CHECK(got.top_p == golden::number(expected["top_p"]));
  CHECK(got.min_p == golden::number(expected["min_p"]));
  CHECK(got.top_k == expected["top_k"].get<int64_t>());
}

void check_greedy(const Json& test_case) {
  const golden::Tensor logits = golden::tensor(test_case["inputs"]["logits"]);
  const SamplingParams params = normalized(params_of(test_case["config"]));
  const int64_t vocab = logits.shape.back();
  const Json& value = test_case["expected"]["token_ids"];
  const std::vector<double> want = value.is_array() ? value.get<std::vector<double>>() : golden::tensor(value).data;
  for (size_t i = 0; i < want.size(); ++i) {
    const std::vector<float> row(logits.data.begin() + i * vocab, logits.data.begin() + (i + 1) * vocab);
    CHECK(draw(row.data(), vocab, params, 0.7).token == int32_t(want[i]));
  }
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("sampling: distributions and parameters of vLLM") {
    golden::for_each_case(
        "sampling",
        [](const Json& test_case) {
          const std::string kind = golden::prefix(test_case);
          if (kind == "sampling_params") return check_params(test_case);
          if (kind == "greedy") return check_greedy(test_case);
          check_distribution(test_case);
        },
        [](const Json& test_case) {
          return golden::prefix(test_case) != "penalties" && only_known(test_case["config"]);
        });
  }
}
