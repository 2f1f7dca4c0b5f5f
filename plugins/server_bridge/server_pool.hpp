// The servers of this rank from their start to their end: attached or started, paused, asleep, and with which weights.
// What happens between one call and the next, as the loss and the return of a server, is the fleet's and the nursery's.
//
// Threads: the constructor, the destructor and the calls below are the host's of classes L and C: one at a time, on any
// thread but the loop's. Only `size`, `has_weights`, `loop` and `fleet` may be called from any thread; the fleet itself
// is for the loop's thread. No mutex: `paused_` and what stands beside it belong to the call, and servers to the loop.
#pragma once
#include <hexad/services.hpp>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plugins/server_bridge/fleet/control.hpp"
#include "plugins/server_bridge/fleet/fleet.hpp"
#include "plugins/server_bridge/nursery.hpp"
#include "plugins/server_bridge/work_dir.hpp"

namespace hexad::bridge {

class ServerPool {
 public:
  // Attaches to the servers of `settings`, or starts its own; these wait for the first update if the model has no
  // weights. Returns before any of them answers. `rank` tells the ranks of a run apart. What it is given outlives it.
  ServerPool(const Dialect& dialect, const Settings& settings, const WorkDir& work, int rank, Outbox& outbox,
             const Log& log);

  int64_t size() const;  // servers, whether they are there or not
  // False: servers of this rank start with the first update, and none is there before.
  bool has_weights() const { return has_weights_; }
  EventLoop& loop() { return loop_; }
  Fleet& fleet() { return fleet_; }
  Control& control() { return control_; }

  // A server without development endpoints cannot pause: its requests are taken back, and go on from their tokens.
  void pause();
  void resume();
  // A server without sleep mode gives nothing back; its requests wait all the same.
  void sleep(const sdk::Call& call, int32_t level);
  void wake();
  void flush_cache();

  // Servers that run stand still for a scope: whatever is thrown meanwhile, they go on at its end. Those that were
  // paused or asleep before are left as they are.
  class Halt {
   public:
    explicit Halt(ServerPool& pool) : pool_(pool), needed_(pool.runs()) {
      if (needed_) pool_.halt();
    }
    ~Halt() {
      if (needed_) pool_.unhalt();
    }
    Halt(const Halt&) = delete;
    Halt& operator=(const Halt&) = delete;

   private:
    ServerPool& pool_;
    const bool needed_;
  };

  // Waits until none is on its first start any more, as long as it may take. Of a first start alone: a server that is
  // down, or comes back, takes the next update that finds it there. Throws sdk::Error if the call is cancelled.
  void await_first_starts(const sdk::Call& call);
  // Waits until a server takes weights, as long as for an answer. Throws as await_first_starts.
  void await_any(const sdk::Call& call);

  // Servers are about to be given weights of this version.
  void offer(int64_t version) {
    loop_.run([&] { fleet_.offer(version); });
  }
  // These weights are in force from now on: `holders` have them. `dir` holds a copy, which the others load, and from
  // which servers of this rank start; nothing: there is none. What waits for weights since a sleep goes on. Throws if
  // servers that wait for a first copy cannot be started.
  void put_in_force(int64_t version, const std::vector<Target>& holders,
                    const std::optional<std::filesystem::path>& dir);
  // Whether a server that has not answered yet was started from this folder.
  bool starts_from(const std::filesystem::path& dir);
  bool has_copy();            // of the weights in force
  std::string last_errors();  // " SERVER: WHY;" of each

 private:
  bool runs() const { return !paused_ && !asleep_ && !without_weights_; }
  void halt();  // holds, and pauses the servers
  std::vector<Target> up_with_updates();
  void post_each(std::vector<Target>& targets, const std::vector<Post>& posts);
  void unhalt();
  bool spawns() const { return settings_.urls.empty(); }

  const Dialect& dialect_;
  const Names names_;
  const Settings& settings_;
  EventLoop loop_;
  Fleet fleet_;
  StopsLoop before_fleet_{loop_};
  Control control_;
  Nursery nursery_;
  StopsLoop before_nursery_{loop_};
  std::atomic<bool> has_weights_{true};
  bool paused_ = false, asleep_ = false, without_weights_ = false;  // the host's calls of class C
  int32_t sleep_level_ = 0;
  Clock::time_point first_starts_end_;  // until which the first update waits for servers
};

}  // namespace hexad::bridge
