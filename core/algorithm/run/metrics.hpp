// Metrics that the controller computes itself from a step's batch (prefix "train/").
#pragma once
#include <map>
#include <span>
#include <string>

namespace hexad::algorithm {

using Metrics = std::map<std::string, double>;

// mean, max and min of the advantages over tokens with mask 1, as advantages/mean, /max, /min; 0 without such tokens.
Metrics advantage_metrics(std::span<const float> advantages, std::span<const float> mask);

// Shares of samples with baseline 0, 1 and in between, as baseline_reward/pct_0, pct_1, pct_mixed.
Metrics baseline_metrics(std::span<const float> baseline);

}  // namespace hexad::algorithm
