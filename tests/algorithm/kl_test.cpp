#include "core/algorithm/advantage/kl.hpp"

#include <doctest/doctest.h>

#include <cmath>

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

std::optional<double> clamp_of(const Json& config, const char* key, double otherwise) {
  if (!config.contains(key)) return otherwise;
  return config.at(key).is_null() ? std::nullopt : std::optional<double>(config.at(key).get<double>());
}

void check_kl(const Json& test_case) {
  const Json& config = test_case.at("config");
  const Json& want = test_case.at("expected");
  if (want.contains("error")) {
    CHECK_THROWS_AS(kl_type_named(config.at("kl_type").get<std::string>()), Error);
    return;
  }
  KlOptions options;
  options.type = kl_type_named(config.at("kl_type").get<std::string>());
  options.input_clamp = clamp_of(config, "input_clamp_value", 20);
  options.output_clamp = clamp_of(config, "output_clamp_value", 10);
  const Json& inputs = test_case.at("inputs");
  const Floats logprobs = floats(inputs, "logprobs"), reference = floats(inputs, "logprobs_reference");
  const Floats weights = floats(inputs, "importance_sampling_weights");
  const Floats value = kl(logprobs, reference, options, weights);
  golden::check_close({value.begin(), value.end()}, golden::tensor(want.at("kl")).data, 1e-5, 1e-6);
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("advantages: kl") {
    golden::for_each_case("advantages", check_kl,
                          [](const Json& test_case) { return golden::prefix(test_case) == "kl"; });
  }
}

TEST_CASE("KL errors") {
  CHECK_THROWS_WITH_AS(kl_type_named("k4"), doctest::Contains("unknown estimator 'k4'; known: k1, k2, k3"), Error);
  CHECK_THROWS_WITH_AS(kl(Floats{1, 2}, Floats{1}, {}), doctest::Contains("2 log-probs, 1 reference log-probs"), Error);
}
