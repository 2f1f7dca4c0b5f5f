// What start() makes and stop() ends: options, the run's key/value store, process groups.
#pragma once
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "runtime/group/waits.hpp"
#include "runtime/runtime.h"

// A process group as the C table hands it out. One-rank groups do not exist: callers see NULL.
struct hexad_comm {
  std::string name;
  std::vector<int32_t> ranks;  // world ranks in group order
  int32_t rank = 0;            // of this process inside the group
  c10::intrusive_ptr<c10d::ProcessGroup> group;

  int32_t size() const { return static_cast<int32_t>(ranks.size()); }
};

namespace hexad::runtime {

struct Session {
  hexad_runtime_options options{};
  std::string master_address;
  // Address of this host on the network that leads to the master: gloo binds there.
  std::string local_address;
  c10::intrusive_ptr<c10d::Store> store;
  std::unique_ptr<Waits> waits;                    // of a world of several ranks
  std::vector<std::unique_ptr<hexad_comm>> comms;  // in order of creation; comms[0] is the block's when it has ranks
  std::mutex mutex;                                // guards comms

  std::chrono::milliseconds timeout() const { return std::chrono::milliseconds(options.timeout_ms); }
  at::Device device() const;
};

// The running session; throws when start() was not called.
Session& session();

hexad_code start(const hexad_runtime_options* options);
void stop();

// Into and from the run's store.
hexad_code kv_put(const char* key, const void* value, uint64_t size);
// Waits up to timeout_ms (negative: the session's). *value is valid until this thread's next kv_get.
hexad_code kv_get(const char* key, int64_t timeout_ms, const void** value, uint64_t* size);

}  // namespace hexad::runtime
