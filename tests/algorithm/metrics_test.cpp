#include "core/algorithm/grpo/phases.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace hexad;
using namespace hexad::algorithm;

TEST_CASE("advantage metrics count the tokens of the loss only") {
  const std::vector<float> advantages = {9, -1, 2, 5}, mask = {0, 1, 1, 0};
  const Metrics got = advantage_metrics(advantages, mask);
  CHECK(got.at("advantages/mean") == 0.5);
  CHECK(got.at("advantages/max") == 2);
  CHECK(got.at("advantages/min") == -1);
  CHECK(advantage_metrics({}, {}).at("advantages/mean") == 0);
}

TEST_CASE("baseline shares") {
  const std::vector<float> baseline = {0, 1, 1, 0.5};
  const Metrics got = baseline_metrics(baseline);
  CHECK(got.at("baseline_reward/pct_0") == 0.25);
  CHECK(got.at("baseline_reward/pct_1") == 0.5);
  CHECK(got.at("baseline_reward/pct_mixed") == 0.25);
}
