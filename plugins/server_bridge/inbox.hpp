// The host's requests, from submit to the release of their last event.
//
// Threads: every function may be called from any thread, at once with all others; one thread polls at a time. `mutex_`
// guards which requests run and which events are lent. The loop's thread never takes it: it hands events over through
// the outbox, which has a mutex of its own, so that the poller may wait for the loop while it holds `mutex_`.
#pragma once
#include <hexad/services.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "plugins/server_bridge/fleet/fleet.hpp"

namespace hexad::bridge {

class Inbox {
 public:
  // What it is given outlives it. `fleet` runs on `loop` and writes to `outbox`. `weights_expected`, from the poller's
  // thread: whether servers have weights or an update brings some; else requests would wait for ever.
  Inbox(const Settings& settings, EventLoop& loop, Fleet& fleet, Outbox& outbox,
        std::function<bool()> weights_expected);

  // All or none are taken: a malformed request fails the call. One whose prompt leaves no room is taken and ends with
  // an error event.
  void submit(std::span<const hexad_request* const> requests);
  // How many events it has put into `events`, which keep valid until release; 0 after `timeout_ms`. Fails (unavailable)
  // when no server has been there for too long; requests are kept, and go on if one comes back.
  int64_t poll(const sdk::Call& call, std::span<const hexad_completion*> events, int64_t timeout_ms);
  void release(std::span<const hexad_completion* const> events);
  // Those that are not running are left out. The last event of a cancelled request comes as any other's.
  void cancel(std::span<const uint64_t> ids);

 private:
  // What the poller knows of a request that ends at a text, or is to be reported as it grows.
  struct Watched {
    std::vector<std::string> stops;
    int64_t examined = 0;
    bool stream = false;
  };
  void take_in(const std::vector<Request>& requests);
  void end_those_without_room(std::vector<Request>& requests);
  std::unique_ptr<Event> next_event(const sdk::Call& call);
  bool ends_at_text(const sdk::Call& call, Event& event, Watched& watched);
  void fail_if_hopeless(bool time_is_up);

  const Settings& settings_;
  EventLoop& loop_;
  Fleet& fleet_;
  Outbox& outbox_;
  std::function<bool()> weights_expected_;

  std::mutex mutex_;                            // of what follows
  std::unordered_map<uint64_t, Watched> live_;  // ids whose last event has not been handed out
  std::unordered_map<const hexad_completion*, std::unique_ptr<Event>> lent_;
};

}  // namespace hexad::bridge
