// A way for weights to go from this process into servers, without a disk.
#pragma once
#include <hexad/services.hpp>

#include <vector>

#include "plugins/server_bridge/fleet/control.hpp"

namespace hexad::bridge {

class Channel {
 public:
  virtual ~Channel() = default;

  // Its name among the transports of the engine.
  virtual const char* backend() const = 0;
  // Before an update to a version: of servers that it has not met, or that have failed since. Those that cannot fail,
  // and leave the targets.
  virtual void connect(const sdk::Call& call, int64_t version, std::vector<Target>& targets) = 0;
  // Between a server's start and finish of an update. When it returns, every target has taken the bucket in, and its
  // memory may be used again; servers that failed have left the targets.
  virtual void send(const sdk::Call& call, const hexad_weight_list& bucket, std::vector<Target>& targets) = 0;
};

}  // namespace hexad::bridge
