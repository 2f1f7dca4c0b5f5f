// How a generator takes its turns: alone as requests come, in a replica of several ranks as rank 0 says. Rank 0 tells
// the others before each pass (Lockstep); on the others a pass, and whatever waits for a pause between two of them,
// wait for its word.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>

#include "plugins/native/mailbox.hpp"
#include "plugins/native/parallel/agreement.hpp"
#include "plugins/native/parallel/lockstep.hpp"

namespace hexad::native {

// Every function needs the engine's mutex (EngineLoop), but those whose comment says from which threads else they may
// be called. Exchanges with other ranks run on the call's stream of `device`. What LibTorch throws of a lost rank
// leaves as sdk::Error (unavailable).
class Turns {
 public:
  // `mailbox` outlives this.
  Turns(const Replica& replica, at::Device device, Mailbox& mailbox);

  const Replica& replica() const { return lockstep_.replica(); }  // any thread

  // `digest`: of the engine. The leading rank, or the only one, gets what has come in, and has told the others. The
  // others wait for what they are told, and get nothing when their hosts are to act first; they throw sdk::Error
  // (unavailable) when these have not done so within the group's timeout.
  std::optional<Turn> next(const sdk::Call& call, uint64_t digest);
  // The turn's requests. All ranks take theirs or none does: what one of them refuses fails this on every one.
  Mailbox::Sequences arrivals(const sdk::Call& call, const Turn& turn);
  // Runs `body` on every rank, in the order of passes; see Agreement::together().
  void together(const sdk::Call& call, const std::function<void()>& body);

  // What the host asked for comes between two passes. Rank 0 says so; every other rank goes on with next() until it has
  // been told, which stands_apart() says. rejoin(): what the host asked for begins.
  void announce(const sdk::Call& call, uint64_t digest);
  bool stands_apart() const { return !lockstep_.follows() || apart_; }  // any thread
  void rejoin() { apart_ = false; }

  // From the poller, without the mutex. Whether the poll is to end: the call of this rank, or of any, was cancelled.
  // take_called_off() tells it once.
  bool called_off() const { return called_off_; }
  bool take_called_off(const sdk::Call& call);

 private:
  std::optional<Turn> follow(const sdk::Call& call, uint64_t digest);
  void lead(const sdk::Call& call, Turn& turn);
  void require_in_time() const;

  using Clock = std::chrono::steady_clock;

  Lockstep lockstep_;
  Agreement in_turn_;
  at::Device device_;
  Mailbox& mailbox_;
  std::atomic<bool> apart_ = false;       // rank 0 has said so, and this rank's host has not come yet
  Clock::time_point apart_until_ = {};    // at the latest
  Clock::time_point next_question_ = {};  // of rank 0: when it asks the others whether a host has called off its poll
  std::atomic<bool> called_off_ = false;  // of several ranks: a poll's call was cancelled on one
};

}  // namespace hexad::native
