// The plugin's face to the host: the members of hexad_generator_vtable (abi.h), each handed to the part that does it.
//
//   Mailbox     requests and cancellations in, completions out       its own mutex    any thread
//   EngineLoop  the passes, and what comes between two of them       engine's mutex   the poller; one other at a time
//   Turns       in what order, in a replica of several ranks         engine's mutex   EngineLoop
//   Refit       weight updates, layout and checksums of weights      none             one caller at a time
//   Engine      schedule, run the model, draw, finish; pause, sleep  engine's mutex   EngineLoop
#pragma once
#include <chrono>
#include <optional>
#include <span>

#include "plugins/native/engine_loop.hpp"
#include "plugins/native/mailbox.hpp"
#include "plugins/native/refit.hpp"
#include "plugins/native/settings.hpp"

namespace hexad::native {

// Of a replica of several ranks every one is a Generator that gets the same calls and hands out the same completions.
// Rank 0 decides when something takes effect (Lockstep): on the others poll, and whatever waits for a pause between two
// passes, wait for it. A poll that is cancelled on one rank ends so on every one; an update that one rank refuses is
// refused by all, with that rank's error. Requests that one rank was not given, or given otherwise, fail the poll of
// all before one of them runs; whoever is missing ends a wait at the group's timeout. After both the replica is of no
// use.
class Generator {
 public:
  Generator(const sdk::Call& call, const sdk::Config& config);

  void describe(const sdk::Call& call, hexad_generator_info& info);

  // Any thread. All or none are taken: a malformed request fails the call. One that is well-formed but can never fit is
  // taken and ends with an error event.
  void submit(const sdk::Call& call, std::span<const hexad_request* const> requests);
  // One thread at a time. Runs the model in the caller's thread, at least one pass when there is work. Without weights
  // requests wait for an update; where there have never been any and none is arriving when the time is up, poll fails
  // (failed precondition).
  int64_t poll(const sdk::Call& call, std::span<const hexad_completion*> events, int64_t timeout_ms);
  // Any thread, both.
  void release(std::span<const hexad_completion* const> events);
  void cancel(const sdk::Call& call, std::span<const uint64_t> ids);

  // What follows comes one call at a time, from any thread, also while another one polls. Refit says what an update
  // does, and what weight_layout reports.
  void update_begin(const sdk::Call& call, int64_t version) { refit_->begin(call, version); }
  void update_bucket(const sdk::Call& call, const hexad_weight_list& bucket) { refit_->bucket(call, bucket); }
  void update_end(const sdk::Call& call, bool commit) { refit_->end(call, commit); }
  void weight_layout(const sdk::Call& call, hexad_weight_list& out) { refit_->layout(call, out); }

  // pause keeps everything; sleep gives memory back, and running sequences are computed again after wake.
  void pause(const sdk::Call& call);
  void resume(const sdk::Call& call);
  void sleep(const sdk::Call& call, int32_t level);
  void wake(const sdk::Call& call);
  void flush_cache(const sdk::Call& call);

  // How often the sequences that have ended had lost their place in the KV cache. Not while a poll runs.
  int64_t preemptions() const { return loop_->engine().preemptions(); }

 private:
  void tell_that_it_runs(const sdk::Call& call);

  Settings settings_;
  int64_t vocab_size_ = 0;
  Mailbox mailbox_;
  std::optional<EngineLoop> loop_;  // both from the constructor on
  std::optional<Refit> refit_;
  std::chrono::steady_clock::time_point last_told_ = {};  // the poller's
};

}  // namespace hexad::native
