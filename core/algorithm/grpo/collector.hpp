// Keeps the generators at work on the groups of the steps to come (NeMo-RL's trajectory collector), turn by turn, and
// accounts for each of them.
#pragma once
#include <chrono>
#include <deque>
#include <map>
#include <string>

#include "core/algorithm/grpo/grpo.hpp"
#include "core/algorithm/grpo/replay_buffer.hpp"
#include "core/rollout/group_stream.hpp"
#include "core/rollout/scorer.hpp"
#include "core/rollout/scoring.hpp"

namespace hexad::algorithm {

// Groups by what became of them. Whatever was started is trained, buffered, running, or dropped for a reason.
struct GroupCounts {
  int64_t started = 0, trained = 0;
  std::map<std::string, int64_t> dropped;  // by reason

  int64_t all_dropped() const;
};

// While workers are waited for, whatever for, groups go from generator to environment and into their next turn.
class Collector {
 public:
  Collector(Grpo& run, cluster::WorkerGroup& workers);
  ~Collector();

  // Starts the groups that the current weights may generate: of the steps from the next one to
  // `max_trajectory_age_steps` later, as far as the buffer has room, and again those that were given up. `last_step`:
  // of the run.
  void start_groups(int64_t last_step);
  // Waits until the step has all its groups; false if the data ended before it, or the run is interrupted. Groups that
  // take too long, or fail, are dropped and started again. Throws Error where that does not help.
  bool wait_for(int64_t step);
  // Takes the step's groups out of the buffer, as a rollout.
  rollout::Rollout take(int64_t step, telemetry::Metrics& metrics);
  // Waits until nothing runs; false if the run is interrupted before. What takes too long is dropped, and started again
  // by the next start_groups.
  bool drain();
  // Drops what runs and what is buffered: the run is over.
  void stop();

  // The position of the prompts after those of the step, where a resumed run goes on.
  data::LoaderState position_after(int64_t step) const;
  const GroupCounts& counts() const { return counts_; }
  // Throws Error(internal) unless the counts add up.
  void check_balance() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Group {  // until it is in the buffer
    int64_t target = 0, place = 0, version = 0, attempt = 0;
    data::SharedDatum prompt;
    std::shared_ptr<rollout::Turns> turns = {};  // of this attempt
    bool is_drawn = false;                       // else its newest responses are being scored
    Clock::time_point began{};                   // the turn
  };

  bool take_prompts(int64_t target);
  rollout::Plan plan_of(const Group& group) const;
  void submit();
  // True: an environment is at work.
  bool go_on();
  // Their next turn, or into the buffer.
  void go_on(const std::vector<int64_t>& keys);
  // Throws what did not go well: an environment's error, generation that fails too often.
  void settle();
  bool has_trouble() const { return error_ || !failed_.empty(); }
  void give_up_overdue(const std::function<bool(const Group&)>& wanted);
  // Throws Error(internal) unless it runs.
  Group end(int64_t key);
  void drop(int64_t key, const std::string& reason, bool again);
  int64_t version_steps(int64_t version) const;
  // How old the tokens are that the model wrote, and whether the weights changed within a sample.
  void add_ages(std::span<const rollout::Conversation> conversations, int64_t step, telemetry::Metrics& metrics) const;

  Grpo& run_;
  cluster::WorkerGroup& workers_;
  rollout::GroupStream stream_;
  rollout::Scorer scorer_;
  const config::AsyncGrpoConfig& config_;
  rollout::Sampling sampling_;
  ReplayBuffer buffer_;
  GroupCounts counts_;
  std::map<int64_t, Group> running_;                     // by key
  std::deque<Group> waiting_;                            // to be started, in order
  std::vector<std::pair<int64_t, std::string>> failed_;  // keys of running ones, with the generator's words
  std::exception_ptr error_;                             // of an environment, until somebody asks
  std::map<int64_t, rollout::Reported> reported_;        // by environments, of a step
  std::map<int64_t, data::LoaderState> positions_;       // after the prompts of a step
  std::map<int64_t, int64_t> steps_of_version_;          // of the generators' weights: steps of training
  int64_t next_key_ = 0, next_target_ = 0, failures_ = 0;
  bool data_ended_ = false;
};

}  // namespace hexad::algorithm
