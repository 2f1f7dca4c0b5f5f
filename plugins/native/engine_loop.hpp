// Who has the engine when. One thread polls and runs passes; whoever needs the engine for itself comes in between two
// of them. In a replica of several ranks both happen alike on every rank (Turns).
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "plugins/native/engine.hpp"
#include "plugins/native/parallel/turns.hpp"

namespace hexad::native {

// The mutex guards the engine and the turns. It is held for the length of a pass, and taken before the mailbox's.
class EngineLoop {
 public:
  // `mailbox` outlives this.
  EngineLoop(std::unique_ptr<Engine> engine, Replica replica, at::Device device, Mailbox& mailbox);

  // What became of a call of run_once().
  struct Pass {
    bool ran = false;            // the model
    bool lacks_weights = false;  // there would have been something to run
  };

  // ---- From the poller.

  // Takes in what has come, runs a pass if there is work, and delivers the events. Does nothing where somebody waits to
  // be alone with the engine. Throws what Engine::step(), Engine::make_cache() and Turns throw, as sdk::Error.
  Pass run_once(const sdk::Call& call);
  // Whether the poll is to end, as its call was cancelled, on this rank or another. take_called_off() tells it once.
  bool called_off() const { return turns_.called_off(); }
  bool take_called_off(const sdk::Call& call) { return turns_.take_called_off(call); }
  // Whether run_once() waits for what rank 0 says, so that the poller need not.
  bool awaits_a_turn() const { return !turns_.stands_apart(); }

  // ---- From any thread; in a replica the same calls in the same order on every rank.

  // Runs `body` between two passes, on the call's stream. What LibTorch and modeling throw leaves as sdk::Error. The
  // poller steps aside for it, and looks again afterwards.
  void exclusively(const sdk::Call& call, const std::function<void(Engine&)>& body);
  const Replica& replica() const { return turns_.replica(); }
  at::Device device() const { return device_; }

  // The engine, for what only exclusively() changes, or nobody: not while another thread is in there.
  const Engine& engine() const { return *engine_; }

 private:
  Pass run_turn(const sdk::Call& call, const Turn& turn);
  void make_cache(const sdk::Call& call);
  // Until it is this call's turn to be alone with the engine.
  void come_apart(const sdk::Call& call);

  at::Device device_;
  Mailbox& mailbox_;
  std::mutex mutex_;
  std::atomic<int> waiting_{0};  // in exclusively(): the poller leaves the engine to them between passes
  Turns turns_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace hexad::native
