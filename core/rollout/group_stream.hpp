// Groups of samples that are generated while others train: handed over to the generators, and back when all of a group
// have ended.
#pragma once
#include <map>
#include <vector>

#include "core/rollout/generation.hpp"

namespace hexad::rollout {

// The samples of one prompt, in the order of their requests.
struct FinishedGroup {
  int64_t key = 0;
  data::Batch completions, columns;  // as Generation::generate and take_columns give them
  std::string error;                 // of a sample that failed; empty: none
};

// Messages arrive whenever the workers are called or waited for. One thread.
class GroupStream {
 public:
  // The workers have been started as `placement` says. Borrows them; listens to their completions while it lives.
  GroupStream(cluster::WorkerGroup& workers, const cluster::Placement& placement);
  ~GroupStream();
  GroupStream(const GroupStream&) = delete;

  struct Group {
    int64_t key = 0;                // of the caller's, not among the running ones
    std::vector<Request> requests;  // next to each other where Request::group is the same
  };
  // Each goes to the replica that has the fewest tokens to do. Waits for nothing: may be called while workers are
  // waited for.
  void submit(const std::vector<Group>& groups, const Sampling& sampling);
  // Ends these groups; they do not come back. Keys of others are ignored.
  void cancel(const std::vector<int64_t>& keys);

  int64_t running() const { return static_cast<int64_t>(groups_.size()); }
  std::vector<FinishedGroup> take_finished() { return std::exchange(finished_, {}); }
  // What the generators have reported by host->metric since the last call, reduced over workers.
  std::map<std::string, double> take_metrics() { return std::exchange(metrics_, {}).values(); }

 private:
  struct Running {
    int replica = 0;
    int64_t tokens = 0;  // that it may come to
    uint64_t first = 0;  // id of its first request
    std::vector<data::Batch> completions, columns;
    int64_t missing = 0;
    std::string error;
  };

  void receive(const cluster::protocol::Completions& event);
  void finish(int64_t key);

  cluster::WorkerGroup& workers_;
  cluster::Placement placement_;
  std::map<int64_t, Running> groups_;   // by key
  std::map<uint64_t, int64_t> key_of_;  // of requests that run
  std::vector<int64_t> load_;           // tokens, by replica
  std::vector<FinishedGroup> finished_;
  plugin::MetricSum metrics_;
  uint64_t next_id_ = uint64_t{1} << 32;  // those of Generation::generate are small
};

}  // namespace hexad::rollout
