#include "core/plugin/metric_sum.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using hexad::plugin::MetricSum;
using hexad::plugin::ReduceAs;

TEST_CASE("metrics of ranks and micro-batches are reduced as declared") {
  MetricSum first, second;
  first.add("loss", 1.5, 1, ReduceAs::sum);
  second.add("loss", 0.5, 1, ReduceAs::sum);
  first.add("length", 30, 10, ReduceAs::mean);  // ten samples, three tokens each
  second.add("length", 5, 5, ReduceAs::mean);
  first.add("ratio_min", 0.9, 1, ReduceAs::min);
  second.add("ratio_min", 0.7, 1, ReduceAs::min);
  second.add("ratio_max", 9, 0, ReduceAs::max);  // no observation
  first.add("nan", std::numeric_limits<double>::quiet_NaN(), 1, ReduceAs::sum);
  first.add(second.to_json());
  const auto values = first.values();
  CHECK(values.at("loss") == 2.0);
  CHECK(values.at("length") == doctest::Approx(35.0 / 15));
  CHECK(values.at("ratio_min") == 0.7);
  CHECK(values.at("ratio_max") == -1);
  CHECK(std::isnan(values.at("nan")));
}

TEST_CASE("a rollout of several optimizer steps reports the mean of sums and the extremum of extrema") {
  MetricSum rollout;
  for (const double value : {1.0, 3.0}) {
    MetricSum step;
    step.add("loss", value, 1, ReduceAs::sum);
    step.add("ratio_max", value, 1, ReduceAs::max);
    step.add("global_valid_toks", 10 * value, 1, ReduceAs::mean);
    rollout.merge_global_batch(step, 2);
  }
  CHECK(rollout.values().at("loss") == 2);
  CHECK(rollout.values().at("ratio_max") == 3);
  CHECK(rollout.values().at("global_valid_toks") == 20);
}
