// A weight update, from its begin over its buckets to its end, and the way that it goes.
//
// Over disk, weights are written as they come, and end(commit) has every server pause with its requests kept, load them
// and go on; a server that fails at it is out until it has loaded what is in force. Fails if all that are there fail at
// it again and again: then those before stay in force. Without a disk servers pause at begin and take each bucket as
// it comes; one that fails at it is out until the next update.
//
// Threads: begin, add and end are the host's calls of class C, as those of the ServerPool: one at a time, on any thread
// but the loop's, and no mutex. `under_way` may be called from any thread.
#pragma once
#include <hexad/services.hpp>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugins/server_bridge/refit/checkpoint.hpp"
#include "plugins/server_bridge/refit/delivery.hpp"
#include "plugins/server_bridge/server_pool.hpp"

namespace hexad::bridge {

class WeightUpdate {
 public:
  // What it is given outlives it.
  WeightUpdate(const Dialect& dialect, const Settings& settings, ServerPool& servers, WorkDir& work)
      : dialect_(dialect),
        names_(dialect.names()),
        settings_(settings),
        servers_(servers),
        control_(servers.control()),
        work_(work) {}

  // An update that has not ended is dropped. Throws sdk::Error if a server cannot be updated.
  void begin(const sdk::Call& call, int64_t version);
  // A bucket of whole weights. Throws sdk::Error for one that is refused; the update cannot be committed any more.
  void add(const sdk::Call& call, const hexad_weight_list& bucket);
  // Whatever it throws, the update has ended, and weights before it are in force unless no server has a copy of them.
  void end(const sdk::Call& call, bool commit);
  bool under_way() const { return under_way_; }

 private:
  // An update that goes without a disk. Servers stand still from its first bucket on, as they load each at once.
  struct DirectUpdate {
    ServerPool::Halt halted;
    Delivery delivery;
  };
  Channel* choose_channel(const sdk::Call& call);
  std::vector<Target> reached_by(const Channel& channel);
  void load(std::vector<Target>& targets, const std::filesystem::path& dir);
  void drop_prefixes(std::vector<Target>& targets);
  void publish(const sdk::Call& call, const std::filesystem::path& dir);
  void put_in_force(const sdk::Call& call, const std::vector<Target>& holders,
                    const std::optional<std::filesystem::path>& dir);
  [[noreturn]] void fail_update();

  const Dialect& dialect_;
  const Names names_;
  const Settings& settings_;
  ServerPool& servers_;
  Control& control_;
  WorkDir& work_;
  std::unique_ptr<Channel> channel_;      // the last one used
  std::optional<Checkpoint> checkpoint_;  // of the update that is under way over disk
  std::unique_ptr<DirectUpdate> direct_;  // of one that goes by the channel
  std::string failure_, way_;             // why the update is refused; "disk" or the channel's name
  int64_t version_ = 0;
  std::atomic<bool> under_way_{false};
};

}  // namespace hexad::bridge
