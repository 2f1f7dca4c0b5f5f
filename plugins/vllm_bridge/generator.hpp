// The plugin's face to the host: the members of hexad_generator_vtable (abi.h), for any thread.
#pragma once
#include <hexad/generator.hpp>

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>

#include "plugins/vllm_bridge/fleet/control.hpp"
#include "plugins/vllm_bridge/fleet/fleet.hpp"
#include "plugins/vllm_bridge/process/nursery.hpp"
#include "plugins/vllm_bridge/refit/checkpoint.hpp"
#include "plugins/vllm_bridge/refit/delivery.hpp"
#include "plugins/vllm_bridge/settings.hpp"

namespace hexad::vllm {

// A folder of this instance's own below `parent`, gone with it.
class WorkDir {
 public:
  explicit WorkDir(const std::string& parent);
  ~WorkDir();
  WorkDir(const WorkDir&) = delete;
  WorkDir& operator=(const WorkDir&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Ends the loop's thread before the members that are declared above it, even if one below it throws.
struct StopsLoop {
  EventLoop& loop;
  ~StopsLoop() { loop.stop(); }
};

class Generator {
 public:
  Generator(const sdk::Call& call, const sdk::Config& config);

  void describe(const sdk::Call& call, hexad_generator_info& info);

  // All or none are taken: a malformed request fails the call. One whose prompt leaves no room is taken and ends with an
  // error event.
  void submit(const sdk::Call& call, std::span<const hexad_request* const> requests);
  // Fails (unavailable) when no server has been there for too long; requests are kept, and go on if one comes back.
  int64_t poll(const sdk::Call& call, std::span<const hexad_completion*> events, int64_t timeout_ms);
  void release(std::span<const hexad_completion* const> events);
  void cancel(const sdk::Call& call, std::span<const uint64_t> ids);

  // Over disk, weights are written as they come, and update_end(commit) has every server pause with its requests kept,
  // load them and go on; a server that fails at it is out until it has loaded what is in force. Fails if all that
  // are there fail at it again and again: then those before stay in force. From GPU to GPU servers pause at update_begin
  // and take each bucket as it comes; one that fails at it is out until the next update.
  void update_begin(const sdk::Call& call, int64_t version);
  void update_bucket(const sdk::Call& call, const hexad_weight_list& bucket);
  void update_end(const sdk::Call& call, bool commit);

  // A server without development endpoints cannot pause: its requests are taken back, and go on from their tokens.
  void pause(const sdk::Call& call);
  void resume(const sdk::Call& call);
  // A server without sleep mode gives nothing back; its requests wait all the same.
  void sleep(const sdk::Call& call, int32_t level);
  void wake(const sdk::Call& call);
  void flush_cache(const sdk::Call& call);

 private:
  // What the poller knows of a request that ends at a text, or is to be reported as it grows.
  struct Watched {
    std::vector<std::string> stops;
    int64_t examined = 0;
    bool stream = false;
  };
  std::unique_ptr<Event> next_event(const sdk::Call& call);
  bool ends_at_text(const sdk::Call& call, Event& event, Watched& watched);
  void fail_if_hopeless(bool time_is_up);
  void halt();  // holds, and pauses the servers
  void unhalt();
  // The same for a scope: whatever is thrown meanwhile, servers go on at its end.
  class Halt {
   public:
    Halt(Generator& generator, bool needed) : generator_(generator), needed_(needed) {
      if (needed_) generator_.halt();
    }
    ~Halt() {
      if (needed_) generator_.unhalt();
    }
    Halt(const Halt&) = delete;
    Halt& operator=(const Halt&) = delete;

   private:
    Generator& generator_;
    bool needed_;
  };
  // An update that goes from GPU to GPU. Servers stand still from its first bucket on, as they load each at once.
  struct DirectUpdate {
    Halt halted;
    Delivery delivery;
  };
  bool runs() const { return !paused_ && !asleep_ && !without_weights_; }
  Channel* choose_channel(const sdk::Call& call);
  std::vector<Target> reached_by(const Channel& channel);
  void await_servers(const sdk::Call& call);
  void drop_prefixes(std::vector<Target>& targets);
  void wait_for_server(const sdk::Call& call);
  std::string last_errors();
  [[noreturn]] void fail_update();
  void remove_old_dirs();
  void put_in_force(const sdk::Call& call, const std::vector<Target>& holders,
                    std::optional<std::filesystem::path> dir);
  void publish(const sdk::Call& call, const std::filesystem::path& dir);
  void load(std::vector<Target>& targets, const std::filesystem::path& dir);

  Log log_;
  Settings settings_;
  WorkDir work_;
  Outbox outbox_;
  EventLoop loop_;
  Fleet fleet_;
  StopsLoop before_fleet_{loop_};
  Control control_;
  Nursery nursery_;
  StopsLoop before_nursery_{loop_};
  bool spawns_ = true;
  std::atomic<bool> has_weights_{true}, updating_{false};
  bool paused_ = false, asleep_ = false, without_weights_ = false;  // the host's calls of class C
  std::unique_ptr<Channel> channel_;                                // the last one used
  std::optional<Checkpoint> checkpoint_;                            // of the update that is under way over disk
  std::unique_ptr<DirectUpdate> direct_;                            // of one that goes by the channel
  std::string update_failure_, way_;  // why the update is refused; "disk" or the channel's name
  int64_t update_version_ = 0;
  Clock::time_point first_starts_end_;       // until which the first update waits for servers
  std::vector<std::filesystem::path> dirs_;  // of weights that were sent, the latest last

  std::mutex mutex_;                            // of what follows
  std::unordered_map<uint64_t, Watched> live_;  // ids whose last event has not been handed out
  std::unordered_map<const hexad_completion*, std::unique_ptr<Event>> lent_;
};

}  // namespace hexad::vllm
