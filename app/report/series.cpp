#include "app/report/series.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace hexad::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kTimeColumns = 120, kEnds = 10;

std::vector<size_t> measured_rows(const std::vector<double>& column) {
  std::vector<size_t> rows;
  for (size_t row = 0; row < column.size(); ++row) {
    if (std::isfinite(column[row])) rows.push_back(row);
  }
  return rows;
}

// [0, count) in so many groups: the begin of each, and the end of the last.
size_t group_begin(size_t group, size_t groups, size_t count) { return group * count / groups; }

double mean_of(const std::vector<double>& column, std::span<const size_t> rows) {
  double sum = 0;
  for (const size_t row : rows) sum += std::isfinite(column[row]) ? column[row] : 0;
  return sum / static_cast<double>(rows.size());
}

constexpr std::string_view kTiming = "timing/train/", kWhole = "timing/train/total_step_time";

// "generation", or "prepare_for_generation/total" of a part that has parts of its own.
bool is_part(const std::string& key) {
  return key.starts_with(kTiming) && key != kWhole &&
         (key.find('/', kTiming.size()) == std::string::npos || key.ends_with("/total"));
}

// Largest first.
std::vector<std::string> parts_of(const RunRecord& run) {
  std::vector<std::pair<double, std::string>> sums;
  for (const auto& [key, column] : run.series) {
    if (!is_part(key)) continue;
    const std::vector<size_t> rows = measured_rows(column);
    sums.emplace_back(rows.empty() ? 0 : -mean_of(column, rows) * static_cast<double>(rows.size()), key);
  }
  std::ranges::sort(sums);
  std::vector<std::string> parts;
  for (auto& [sum, key] : sums) parts.push_back(std::move(key));
  return parts;
}

}  // namespace

Json rounded(double value) {
  return std::isfinite(value) ? Json(std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr)) : Json();
}

Json page_series(const std::vector<double>& column) {
  if (column.size() <= kMostPoints) {
    Json list = Json::array();
    for (const double value : column) list.push_back(rounded(value));
    return list;
  }
  const std::vector<size_t> rows = measured_rows(column);
  const auto with_values = [&](std::span<const size_t> kept) {
    Json values = Json::array();
    for (const size_t row : kept) values.push_back(rounded(column[row]));
    return Json{{"rows", kept}, {"values", std::move(values)}};
  };
  if (rows.size() <= kMostPoints) return with_values(rows);
  constexpr size_t groups = kMostPoints / 2;
  std::vector<size_t> extremes;
  Json means = Json::array();
  for (size_t group = 0; group < groups; ++group) {
    const size_t begin = group_begin(group, groups, rows.size()), end = group_begin(group + 1, groups, rows.size());
    const std::span<const size_t> members(rows.data() + begin, end - begin);
    const auto [low, high] =
        std::ranges::minmax_element(members, {}, [&](size_t row) -> const double& { return column[row]; });
    extremes.insert(extremes.end(), {std::min(*low, *high), std::max(*low, *high)});
    means.push_back(rounded(mean_of(column, members)));
  }
  Json thinned = with_values(extremes);
  thinned["means"] = std::move(means);
  return thinned;
}

Json summary(const std::vector<double>& column) {
  const std::vector<size_t> rows = measured_rows(column);
  if (rows.empty()) return {};
  const std::span<const size_t> all(rows), first = all.first(std::min(kEnds, rows.size())),
                                           last = all.last(std::min(kEnds, rows.size()));
  const auto [low, high] = std::ranges::minmax(all, {}, [&](size_t row) { return column[row]; });
  return {{"count", rows.size()},
          {"sum", rounded(mean_of(column, all) * static_cast<double>(rows.size()))},
          {"low", rounded(column[low])},
          {"high", rounded(column[high])},
          {"first", rounded(mean_of(column, first))},
          {"last", rounded(mean_of(column, last))},
          {"from", {rows.front(), rounded(column[rows.front()])}},
          {"to", {rows.back(), rounded(column[rows.back()])}}};
}

Json time_columns(const RunRecord& run) {
  const std::vector<std::string> parts = parts_of(run);
  Json columns = Json::array();
  std::vector<size_t> rows;
  const std::vector<double>* whole = run.find(std::string(kWhole));
  if (whole) rows = measured_rows(*whole);
  std::erase_if(rows, [&](size_t row) { return (*whole)[row] <= 0; });
  const size_t groups = std::min(rows.size(), kTimeColumns);
  for (size_t group = 0; group < groups; ++group) {
    const size_t begin = group_begin(group, groups, rows.size()), end = group_begin(group + 1, groups, rows.size());
    const std::span<const size_t> members(rows.data() + begin, end - begin);
    Json seconds = Json::array();
    for (const std::string& key : parts) seconds.push_back(rounded(mean_of(run.series.at(key), members)));
    columns.push_back({{"from", run.steps[members.front()]},
                       {"to", run.steps[members.back()]},
                       {"total", rounded(mean_of(*whole, members))},
                       {"seconds", std::move(seconds)}});
  }
  return {{"parts", parts}, {"columns", std::move(columns)}};
}

}  // namespace hexad::report
