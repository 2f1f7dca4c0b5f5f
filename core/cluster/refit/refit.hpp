// Hands the trainers' weights to the generators.
#pragma once
#include "core/cluster/placement.hpp"
#include "core/cluster/process/worker_group.hpp"

namespace hexad::cluster {

// Colocated, each worker passes them on inside its process. Apart, a plan is made of both sides' layouts before the
// first refit, and a process group of all ranks carries it out: every rank sends what it holds to those that need it.
class Refit {
 public:
  Refit(WorkerGroup& workers, const Placement& placement) : workers_(workers), placement_(placement) {}

  // The next completions carry `version`. Apart: requests that run may have their KV cache computed again.
  void run(int64_t version, bool recompute_kv_cache = false);

  // Apart: what each rank sends in a refit, in bytes; empty before the first one.
  const std::vector<int64_t>& bytes_sent() const { return bytes_sent_; }

 private:
  void connect();

  WorkerGroup& workers_;
  Placement placement_;
  std::vector<int64_t> bytes_sent_;
  bool connected_ = false;
};

}  // namespace hexad::cluster
