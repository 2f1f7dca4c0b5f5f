#include "core/algorithm/run/metrics.hpp"

#include <algorithm>

namespace hexad::algorithm {

Metrics advantage_metrics(std::span<const float> advantages, std::span<const float> mask) {
  double total = 0, count = 0, largest = 0, smallest = 0;
  for (size_t t = 0; t < advantages.size(); ++t) {
    if (mask[t] == 0) continue;
    largest = count == 0 ? advantages[t] : std::max<double>(largest, advantages[t]);
    smallest = count == 0 ? advantages[t] : std::min<double>(smallest, advantages[t]);
    total += advantages[t];
    count += 1;
  }
  return {
      {"advantages/mean", count > 0 ? total / count : 0}, {"advantages/max", largest}, {"advantages/min", smallest}};
}

Metrics baseline_metrics(std::span<const float> baseline) {
  const double count = std::max<double>(1, static_cast<double>(baseline.size()));
  const double zeros = static_cast<double>(std::count(baseline.begin(), baseline.end(), 0.0f));
  const double ones = static_cast<double>(std::count(baseline.begin(), baseline.end(), 1.0f));
  const double mixed = static_cast<double>(baseline.size()) - zeros - ones;
  return {{"baseline_reward/pct_0", zeros / count},
          {"baseline_reward/pct_1", ones / count},
          {"baseline_reward/pct_mixed", mixed / count}};
}

}  // namespace hexad::algorithm
