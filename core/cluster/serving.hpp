// Requests that run while a worker waits for its next command, so that generation goes on while others train.
#pragma once
#include <unordered_map>
#include <vector>

#include "core/cluster/generation_requests.hpp"
#include "core/plugin/generator_plugin.hpp"
#include "core/plugin/metric_sum.hpp"

namespace hexad::cluster {

struct WorkerState;

// What has ended leaves as an event "completions": ids, texts of those that failed, and a batch with columns (as the
// answer of `generate`). Of a replica of several workers one reports.
class Serving {
 public:
  void add(const data::Batch& prompts, bool reports);
  // The context of a call about them: what the generator reports leaves with them, and not with a command's answer.
  plugin::CallContext context(WorkerState& state);
  bool idle() const { return running_.empty(); }

  // True if the event is of one of these requests.
  bool take(const hexad_completion& event);
  // Sends what has been taken.
  void hand_out(WorkerState& state);
  // Polls the generator for a moment, and hands out.
  void advance(WorkerState& state);

 private:
  struct Running {
    int64_t prompt_tokens = 0;
    bool reports = true;
  };
  std::unordered_map<uint64_t, Running> running_;
  std::vector<uint64_t> ids_;  // of what follows
  std::vector<Completion> completions_;
  std::vector<data::Batch> columns_;
  std::vector<std::string> errors_;  // empty: it ended well
  plugin::MetricSum metrics_;        // since the last event
};

}  // namespace hexad::cluster
