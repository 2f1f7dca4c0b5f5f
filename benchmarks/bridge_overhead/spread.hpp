// Median and extremes of a quantity over rounds.
#pragma once
#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

namespace hexad::bridge_overhead {

inline double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

inline double quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  const auto at = std::min(values.size() - 1, static_cast<size_t>(part * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

inline nlohmann::ordered_json spread(const std::vector<double>& values) {
  return {{"median", quantile(values, 0.5)}, {"least", quantile(values, 0)}, {"most", quantile(values, 1)}};
}

}  // namespace hexad::bridge_overhead
