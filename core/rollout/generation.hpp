// The rollout engine as the algorithm sees it: prompts in, completions with log-probs out, weights kept fresh.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/cluster/process/worker_group.hpp"
#include "core/cluster/refit/refit.hpp"
#include "core/config/typed/policy_config.hpp"
#include "core/data/batch.hpp"
#include "core/plugin/metric_sum.hpp"

namespace hexad::rollout {

// One sample to generate.
struct Request {
  std::span<const int32_t> prompt;     // borrowed until generate returns
  int64_t group = 0;                   // samples of one prompt share a group: the prompt is computed once
  uint64_t seed = 0;                   // draws are keyed by (seed, position)
  int64_t max_new_tokens = INT64_MAX;  // beside that of Sampling
};

enum class Finish : int32_t { stop = 1, length = 2, aborted = 3 };  // HEXAD_FINISH_*

// How tokens are chosen, and how many; from policy.generation.
struct Sampling : cluster::protocol::Sampling {
  int64_t max_new_tokens = 1;
  int64_t max_total_tokens = 1;          // prompt and completion
  std::vector<int64_t> imposed_lengths;  // new tokens of each sample of a rollout, in their order; empty: as sampled
};
// `eos` stands in for an absent policy.generation.stop_token_ids.
Sampling sampling_from(const config::PolicyConfig& policy, const std::vector<int64_t>& eos);
// The same, but nothing that is sampled ends a response before its length. No lengths: as it was.
Sampling with_imposed_lengths(Sampling sampling, const std::vector<int64_t>& lengths);

// Throws Error(data) unless every prompt leaves room for a response.
void check_prompts(std::span<const Request> requests, const Sampling& sampling);

// Those that `share` lists, in its order: columns tokens i32 (token), group, seed and max_new_tokens i64 (sample).
data::Batch prompts_of(std::span<const Request> requests, std::span<const int64_t> share, const Sampling& sampling);

// Every generator rank hosts one. Neighbours may be one replica: each gets the same requests, and the first one's
// completions count. Groups are dealt over the replicas. One thread.
class Generation {
 public:
  // The workers have been started as `placement` says. Borrows them.
  Generation(cluster::WorkerGroup& workers, const cluster::Placement& placement)
      : workers_(workers), placement_(placement), refit_(workers, placement) {}
  explicit Generation(cluster::WorkerGroup& workers, int64_t replica_size = 1)
      : Generation(workers, cluster::colocated(workers.size(), static_cast<int>(replica_size))) {}

  // One completion a request, in their order: columns tokens i32 and logprobs f32 (token), finish i32 and
  // weight_version i64 (sample). Log-probs are of the distribution that was sampled from.
  data::Batch generate(std::span<const Request> requests, const Sampling& sampling);

  // What the generators gave along with the last completions, for every token of prompt and completion: token columns
  // over the same samples, e.g. routed_experts; often none. They can be large: they are handed over once.
  data::Batch take_columns() { return std::exchange(columns_, {}); }

  // What the generators reported by host->metric during the last generate, reduced over workers.
  const plugin::MetricSum& metrics() const { return metrics_; }

  // Hands the backend's current weights to the generators; the next completions carry the new version. Requests that
  // run go on under it, with the keys and values that they have unless those are to be computed again.
  void refit(bool recompute_kv_cache = false);
  // Gives memory back until the next generate or refit: level 1 that of the KV cache, 2 the weights' too, without which
  // generate throws Error(worker) before a refit; 0 nothing.
  void sleep(int64_t level);
  // Whether training has changed the weights since the last refit.
  void mark_stale() { stale_ = true; }
  bool stale() const { return stale_; }
  int64_t weight_version() const { return version_; }

 private:
  void wake();

  cluster::WorkerGroup& workers_;
  cluster::Placement placement_;
  cluster::Refit refit_;
  plugin::MetricSum metrics_;
  data::Batch columns_;
  bool stale_ = true, asleep_ = false, without_weights_ = false;
  int64_t version_ = 0;
};

}  // namespace hexad::rollout
