// What the host's threads and the engine hand each other: requests and cancellations in, completions out.
//
// One mutex guards every member, and no function holds it while it calls out. Where the engine's mutex is held too
// (EngineLoop), this one is taken second.
#pragma once
#include <hexad/services.hpp>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plugins/native/event.hpp"
#include "plugins/native/parallel/turn.hpp"

namespace hexad::native {

class Mailbox {
 public:
  using Sequences = std::vector<std::unique_ptr<Sequence>>;

  // ---- From any thread.

  // Takes all or none: throws sdk::Error (invalid argument) when the id of one is that of a request whose last event
  // has not been made, or comes twice.
  void submit(Sequences sequences);
  // Ids of requests that are not running are passed over.
  void cancel(std::span<const uint64_t> ids);
  // Moves completions into `events`, oldest first, as many as there are and fit; returns how many. What they point to
  // stays until release().
  int64_t hand_out(std::span<const hexad_completion*> events);
  void release(std::span<const hexad_completion* const> events);
  // Ends wait_until(): something has changed that the poller should look at.
  void wake();

  // ---- From the poller.

  // Returns at `end`, or when there is something that look() has not seen.
  void wait_until(std::chrono::steady_clock::time_point end);

  // ---- From the thread that has the engine to itself.

  // Every request that waits, in order, which stays here until take(); and the cancellations, which are taken.
  struct News {
    std::vector<Arrival> arrived;
    std::vector<uint64_t> cancelled;
  };
  News look();
  // What there is will be seen when another rank says so.
  void look_away();
  // Takes the requests that `arrived` names, in its order, or none. One that is not here may come within `patience`.
  // Throws sdk::Error (failed precondition) when it does not, or is another than the digest says.
  Sequences take(const std::vector<Arrival>& arrived, std::chrono::milliseconds patience);
  // Events to hand out. The id of one that has ended may be given out again.
  void deliver(std::vector<std::unique_ptr<Event>> events);

 private:
  void wake_locked();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool unseen_ = false;  // something that a waiting poller should look at
  Sequences waiting_;
  std::vector<uint64_t> cancelled_;
  std::unordered_set<uint64_t> live_;  // ids whose last event has not been made
  std::deque<std::unique_ptr<Event>> ready_;
  std::unordered_map<const hexad_completion*, std::unique_ptr<Event>> lent_;
};

}  // namespace hexad::native
