// Series as the page has them.
#include "app/report/series.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

using namespace hexad::report;
using Json = nlohmann::ordered_json;

namespace {
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
}

TEST_CASE("a short series is whole, with null where a step lacks it") {
  CHECK(page_series({0.123456, kNone, 2}) == Json{0.12346, nullptr, 2.0});
}

TEST_CASE("of a long one that few steps have, all of these") {
  std::vector<double> column(10 * kMostPoints, kNone);
  column[7] = 1, column[500] = 3;
  CHECK(page_series(column) == Json{{"rows", {7, 500}}, {"values", {1.0, 3.0}}});
}

TEST_CASE("of a long one the extremes, where they were, and means between them") {
  std::vector<double> column(10 * kMostPoints, 1);  // groups of 20
  column[12345] = 9, column[12346] = -5;
  const Json series = page_series(column);
  const auto rows = series.at("rows").get<std::vector<size_t>>();
  const auto values = series.at("values").get<std::vector<double>>();
  CHECK(rows.size() == kMostPoints);
  CHECK(std::is_sorted(rows.begin(), rows.end()));
  const size_t high = static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
  CHECK(rows[high] == 12345);
  CHECK(values[high] == 9);
  CHECK(rows[high + 1] == 12346);
  CHECK(values[high + 1] == -5);
  CHECK(series.at("means").size() == kMostPoints / 2);
  CHECK(series.at("means")[high / 2].get<double>() == doctest::Approx((18 + 9 - 5) / 20.0));
}

TEST_CASE("a summary is of all steps") {
  std::vector<double> column = {kNone, 5};
  for (int i = 0; i < 30; ++i) column.push_back(i);
  column.push_back(kNone);
  CHECK(summary(column) == Json{{"count", 31},
                                {"sum", 440.0},
                                {"low", 0.0},
                                {"high", 29.0},
                                {"first", 4.1},  // 5, and 0 to 8
                                {"last", 24.5},
                                {"from", {1, 5.0}},
                                {"to", {31, 29.0}}});
  CHECK(summary({kNone}).is_null());
}

TEST_CASE("time by part: the largest first, steps without a time left out, long runs in groups") {
  RunRecord run;
  for (int64_t step = 0; step <= 240; ++step) run.steps.push_back(step);
  run.series["timing/train/total_step_time"].assign(241, 4);
  run.series["timing/train/total_step_time"][0] = kNone;  // a validation alone
  run.series["timing/train/generation"].assign(241, 1);
  run.series["timing/train/refit/total"].assign(241, 2);
  run.series["timing/train/refit/copy"].assign(241, 2);
  run.series["timing/train/generation"][1] = 2;
  const Json time = time_columns(run);
  CHECK(time.at("parts") == Json{"timing/train/refit/total", "timing/train/generation"});
  REQUIRE(time.at("columns").size() == 120);
  CHECK(time.at("columns")[0] == Json{{"from", 1}, {"to", 2}, {"total", 4.0}, {"seconds", {2.0, 1.5}}});
  CHECK(time.at("columns")[119].at("to") == 240);
  CHECK(time_columns(RunRecord()).at("columns").empty());
}
