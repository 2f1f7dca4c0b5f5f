#include "core/algorithm/metrics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/error.hpp"

namespace hexad::algorithm {
namespace {

constexpr std::array<std::string_view, 7> kMeans = {
    "lr", "wd", "reward", "filtered_reward", "global_valid_seqs", "global_valid_toks", "mean_prompt_length"};

bool is_minimum(std::string_view name) { return name.ends_with("_min"); }
bool is_maximum(std::string_view name) { return name.ends_with("_max"); }

bool is_mean(std::string_view name) { return std::find(kMeans.begin(), kMeans.end(), name) != kMeans.end(); }

double sum(std::span<const double> values) {
  double total = 0;
  for (double value : values) total += value;
  return total;
}

// A micro-batch without tokens reports +inf or -inf.
double extremum(std::span<const double> values, bool minimum) {
  double best = minimum ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  for (double value : values) {
    if (std::isfinite(value)) best = minimum ? std::min(best, value) : std::max(best, value);
  }
  return std::isfinite(best) ? best : -1;
}

}  // namespace

void add_metrics(MetricLists& lists, const Metrics& micro_batch, int64_t num_global_batches) {
  for (const auto& [name, value] : micro_batch) {
    const bool whole = is_minimum(name) || is_maximum(name) || is_mean(name);
    lists[name].push_back(whole ? value : value / static_cast<double>(num_global_batches));
  }
}

Metrics reduce_metrics(const MetricLists& lists) {
  Metrics result;
  for (const auto& [name, values] : lists) {
    if (values.empty()) continue;
    if (is_minimum(name) || is_maximum(name)) {
      result[name] = extremum(values, is_minimum(name));
    } else if (is_mean(name)) {
      result[name] = sum(values) / static_cast<double>(values.size());
    } else {
      result[name] = sum(values);
    }
  }
  return result;
}

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

double pass_at_k(int64_t n, int64_t c, int64_t k) {
  if (k < 1 || k > n || c < 0 || c > n)
    fail(ErrorKind::config, "pass@{} of {} samples, {} right: k must be 1..{}", k, n, c, n);
  if (n - c < k) return 1;
  double miss = 1;
  for (int64_t j = n - c + 1; j <= n; ++j) miss *= 1 - static_cast<double>(k) / static_cast<double>(j);
  return 1 - miss;
}

}  // namespace hexad::algorithm
