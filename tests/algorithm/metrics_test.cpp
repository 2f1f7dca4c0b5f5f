#include "core/algorithm/metrics.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "core/base/error.hpp"

using namespace hexad;
using namespace hexad::algorithm;

TEST_CASE("metrics of micro-batches are summed, averaged or bounded by name") {
  const double infinity = std::numeric_limits<double>::infinity();
  MetricLists lists;
  add_metrics(lists, {{"loss", 0.5}, {"probs_ratio_min", 0.9}, {"probs_ratio_max", 1.5}, {"global_valid_toks", 10}}, 2);
  add_metrics(lists,
              {{"loss", 1.5}, {"probs_ratio_min", infinity}, {"probs_ratio_max", -infinity}, {"global_valid_toks", 10}},
              2);
  const Metrics got = reduce_metrics(lists);
  CHECK(got.at("loss") == 1.0);
  CHECK(got.at("probs_ratio_min") == 0.9);
  CHECK(got.at("probs_ratio_max") == 1.5);
  CHECK(got.at("global_valid_toks") == 10.0);
  CHECK(reduce_metrics({{"probs_ratio_clamped_min", {infinity}}}).at("probs_ratio_clamped_min") == -1);
}

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

TEST_CASE("pass@k") {
  CHECK(pass_at_k(4, 1, 1) == doctest::Approx(0.25));
  CHECK(pass_at_k(4, 2, 2) == doctest::Approx(1 - 1.0 / 6));
  CHECK(pass_at_k(4, 3, 2) == 1);
  CHECK(pass_at_k(4, 0, 4) == 0);
  CHECK_THROWS_AS(pass_at_k(4, 1, 5), Error);
}
