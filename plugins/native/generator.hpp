// The plugin's face to the host: the members of hexad_generator_vtable (abi.h), for any thread.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plugins/native/engine.hpp"
#include "plugins/native/parallel/agreement.hpp"
#include "plugins/native/parallel/lockstep.hpp"
#include "plugins/native/settings.hpp"

namespace hexad::native {

// Of a replica of several ranks every one is a Generator that gets the same calls and hands out the same completions.
// Rank 0 decides when something takes effect (Lockstep): on the others poll, and whatever waits for a pause between two
// passes, wait for it. A poll that is cancelled on one rank ends so on every one; an update that one rank refuses is
// refused by all, with that rank's error. Requests that one rank was not given, or given otherwise, fail the poll of all
// before one of them runs; whoever is missing ends a wait at the group's timeout. After both the replica is of no use.
class Generator {
 public:
  Generator(const sdk::Call& call, const sdk::Config& config);

  void describe(const sdk::Call& call, hexad_generator_info& info);

  // All or none are taken: a malformed request fails the call. One that is well-formed but can never fit is taken and
  // ends with an error event.
  void submit(const sdk::Call& call, std::span<const hexad_request* const> requests);
  // Runs the model in the caller's thread, at least one pass when there is work. Without weights requests wait for an
  // update; where there have never been any and none is arriving when the time is up, poll fails (failed precondition).
  int64_t poll(const sdk::Call& call, std::span<const hexad_completion*> events, int64_t timeout_ms);
  void release(std::span<const hexad_completion* const> events);
  void cancel(const sdk::Call& call, std::span<const uint64_t> ids);

  // New weights are copied as they come. While old ones are in force they wait beside them, twice the memory of the
  // weights, and take their place in update_end(commit), between two passes. Where none are, after sleep(2) or before
  // the first update, they go to their place at once; if such an update breaks off, or is refused, there are still none
  // in force, and nothing is drawn until a complete one came. What is not finite is not looked for: the first sample
  // that meets it ends with an error which says so, with the version.
  // Running sequences go on with the keys and values that they have; shared prompts are forgotten. Nothing waits for
  // the device but update_end(commit), which returns when the new weights are there. Should they fail to take their
  // place, none are in force. Among several ranks update_end tells what was wrong with a bucket, and not update_bucket:
  // a trainer whose ranks export together goes on, and so do all of them.
  void update_begin(const sdk::Call& call, int64_t version);
  void update_bucket(const sdk::Call& call, const hexad_weight_list& bucket);
  void update_end(const sdk::Call& call, bool commit);
  // Reports weight_sums() of the weights in force too, as metrics weight_sum/NAME: what a trainer sent can be compared.
  // Of a matrix in FP8 they are those of the cast and, as NAME_scale, of its scales: equal to another generator's with
  // the same weights, not to the trainer's; with as many ranks, too, where its columns are cut (weight_sums.hpp).
  void weight_layout(const sdk::Call& call, hexad_weight_list& out);

  // pause keeps everything; sleep gives memory back, and running sequences are computed again after wake.
  void pause(const sdk::Call& call);
  void resume(const sdk::Call& call);
  void sleep(const sdk::Call& call, int32_t level);
  void wake(const sdk::Call& call);
  void flush_cache(const sdk::Call& call);

  // How often the sequences that have ended had lost their place in the KV cache. Not while a poll runs.
  int64_t preemptions() const { return engine_->preemptions(); }

 private:
  void create(const sdk::Call& call);
  void report_weight_sums(const sdk::Call& call);
  struct Layout {
    std::vector<WeightPart> parts;
    std::vector<hexad_weight_slice> slices;
  };

  std::unique_ptr<Sequence> make_sequence(const hexad_request& request) const;
  int64_t hand_out(std::span<const hexad_completion*> events);
  bool run_once(const sdk::Call& call);
  // Of the leading rank, or the only one: what has come in, told to the others. Of the others: what they are told;
  // nothing when their hosts are to act first.
  std::optional<Turn> next_turn(const sdk::Call& call);
  bool run_turn(const sdk::Call& call, const Turn& turn);
  // Of rank 0: sends it, and asks about cancellation when it is time.
  void lead(const sdk::Call& call, Turn& turn);
  // Whether the poll is to end: the call of this rank, or of any, was cancelled. Tells it once.
  bool is_called_off(const sdk::Call& call);
  std::vector<std::unique_ptr<Sequence>> take_from_inbox(const std::vector<Arrival>& arrived);
  // Both on all ranks or on none, before the pass that needs them.
  void add_arrivals(const sdk::Call& call, const std::vector<Arrival>& arrived);
  void make_cache(const sdk::Call& call);
  // Of a rank whose host is to act: throws when it has not done so within the group's timeout.
  void require_in_time() const;
  // Until it is this call's turn to be alone with the engine.
  void come_apart(const sdk::Call& call);
  template <typename Function>
  void exclusively(const sdk::Call& call, Function&& function);
  template <typename Function>
  void all_or_none(Function&& function);
  void signal();

  Settings settings_;
  modeling::ModelConfig model_;  // the whole one
  std::optional<Lockstep> lockstep_;
  std::optional<Agreement> agreement_, in_turn_;            // beside the passes, and between two
  std::atomic<bool> apart_ = false;                         // rank 0 has said so, and this rank's host has not come yet
  std::chrono::steady_clock::time_point apart_until_ = {};  // at the latest
  std::atomic<bool> called_off_ = false;                    // of several ranks: a poll's call was cancelled on one
  std::chrono::steady_clock::time_point next_question_ = {};  // of rank 0
  std::optional<Engine> engine_;
  std::mutex engine_mutex_;
  std::atomic<int> waiting_for_engine_{0};  // the poller leaves the engine to others between passes
  bool paused_ = false;                     // under engine_mutex_
  bool ever_had_weights_ = false;           // under engine_mutex_
  bool stuck_ = false;                      // the poller's
  std::atomic<bool> updating_{false};       // between update_begin and update_end
  std::optional<WeightUpdate> update_;
  std::string update_failure_;
  int64_t update_version_ = 0;
  Layout layout_;

  std::mutex state_mutex_;  // of what follows; taken after engine_mutex_
  std::condition_variable changed_;
  bool dirty_ = false;  // something that a waiting poller should look at
  std::vector<std::unique_ptr<Sequence>> inbox_;
  std::vector<uint64_t> cancelled_;
  std::unordered_set<uint64_t> live_;  // ids whose last event has not been made
  std::deque<std::unique_ptr<Event>> ready_;
  std::unordered_map<const hexad_completion*, std::unique_ptr<Event>> lent_;
};

}  // namespace hexad::native
