// How the metrics of micro-batches and ranks become one number a step (prefix "train/").
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hexad::algorithm {

// Metric name -> one value per micro-batch and rank (and global batch).
using MetricLists = std::map<std::string, std::vector<double>>;
using Metrics = std::map<std::string, double>;

// Appends one micro-batch's metrics. What is summed is divided by `num_global_batches`, so that a step of several
// optimizer steps reports their mean; means and extrema are kept.
void add_metrics(MetricLists& lists, const Metrics& micro_batch, int64_t num_global_batches);

// *_min and *_max: the extremum over finite values, -1 if there is none. lr, wd, reward, filtered_reward,
// global_valid_seqs, global_valid_toks, mean_prompt_length: the mean. Everything else: the sum.
Metrics reduce_metrics(const MetricLists& lists);

// mean, max and min of the advantages over tokens with mask 1, as advantages/mean, /max, /min; 0 without such tokens.
Metrics advantage_metrics(std::span<const float> advantages, std::span<const float> mask);

// Shares of samples with baseline 0, 1 and in between, as baseline_reward/pct_0, pct_1, pct_mixed.
Metrics baseline_metrics(std::span<const float> baseline);

// pass@k of a prompt with n samples of which c are right: 1 if n - c < k, else 1 - prod over j in (n-c, n] of (1 -
// k/j).
double pass_at_k(int64_t n, int64_t c, int64_t k);

}  // namespace hexad::algorithm
