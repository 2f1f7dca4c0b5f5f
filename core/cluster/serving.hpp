// Requests of a worker's generator, and who polls for them.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/cluster/generation_requests.hpp"
#include "core/plugin/kind/generator_plugin.hpp"
#include "core/plugin/metric_sum.hpp"

namespace hexad::cluster {

struct WorkerState;

// Requests of the run outlive their command: a thread polls for them while the main thread trains nothing, waits for
// commands, or carries one out. It has to: the ranks of a replica make a pass together and come to a command at
// different times, so that a rank that takes one meets another that is inside a pass. Requests of a command that waits
// for them are polled for by the main thread, unless the other one does so anyway.
class Serving {
 public:
  struct Finished {
    uint64_t id = 0;
    Completion completion;
    data::Batch columns;
    std::string error;  // empty: it ended well
  };
  // What has ended leaves as an event (run), is kept for wait() (command), is reported by another worker of the replica
  // (nobody), or is of no use to anyone (given_up).
  enum class For { run, nobody, command, given_up };

  Serving() = default;
  ~Serving();
  Serving(const Serving&) = delete;

  // All members are the main thread's.
  void submit(WorkerState& state, const protocol::Prompts& prompts, For whom);
  // Waits up to timeout_ms for requests of the command. Throws what polling ended with, here or in the thread, and
  // Error(plugin) where requests are under way and the generator has brought nothing for too long.
  std::vector<Finished> wait(WorkerState& state, int64_t timeout_ms);
  // Of the command's, so that the next one begins with none.
  void forget();
  // Cancels those of a command that has failed: their ends are thrown away.
  void give_up(WorkerState& state) noexcept;

  // True while requests of the run are under way, or have something to say.
  bool serves();
  // Sends what has ended as the event Completions. Throws as wait().
  void hand_out(WorkerState& state);
  // Cancels what runs, sees it end (for a moment: a rank of a replica must not leave another inside a pass), and ends
  // the thread. Before the generator goes.
  void stop();

 private:
  struct Running {
    int64_t prompt_tokens = 0, max_new_tokens = 0;
    For whom = For::run;
  };

  using Clock = std::chrono::steady_clock;

  void poll(plugin::GeneratorPlugin& generator, const plugin::CallContext& context, int64_t timeout_ms);
  void take(const std::string& label, int64_t step, const hexad_completion& event);
  // The context of a call that asks for events: the generator may say that it is at work.
  plugin::CallContext heard(plugin::CallContext context);
  void require_life(WorkerState& state);
  void run(plugin::GeneratorPlugin& generator);
  bool polls() const { return served_ > 0 && !failure_; }
  void rethrow();

  std::mutex poll_mutex_;  // one poller at a time; taken before mutex_
  std::mutex mutex_;       // of what follows
  std::condition_variable changed_;
  std::unordered_map<uint64_t, Running> running_;
  int64_t served_ = 0;      // of them, those that are not a command's
  int64_t vocabulary_ = 0;  // ids of the model; 0: unknown
  plugin::GeneratorPlugin* generator_ = nullptr;
  std::optional<plugin::CallContext> context_;  // of the thread's calls
  std::vector<Finished> finished_, awaited_;
  plugin::MetricSum metrics_;   // since the last event
  std::exception_ptr failure_;  // of the thread
  bool closing_ = false;
  std::atomic<Clock::time_point> last_life_ = Clock::time_point();  // of the generator: an event, or that it is at work
  std::thread thread_;
};

}  // namespace hexad::cluster
