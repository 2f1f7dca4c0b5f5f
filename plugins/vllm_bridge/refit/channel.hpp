// A way for weights to go from this process's GPU into servers, without a disk.
#pragma once
#include <hexad/services.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/vllm_bridge/fleet/control.hpp"

namespace hexad::vllm {

class Channel {
 public:
  virtual ~Channel() = default;

  // Of vLLM's --weight-transfer-config.
  virtual const char* backend() const = 0;
  // Of servers that it has not met, or that have failed since. Those that cannot fail, and leave the targets.
  virtual void connect(const sdk::Call& call, std::vector<Target>& targets) = 0;
  // Between a server's start and finish of an update. When it returns, every target has taken the bucket in, and its
  // memory may be used again; servers that failed have left the targets.
  virtual void send(const sdk::Call& call, const hexad_weight_list& bucket, std::vector<Target>& targets) = 0;
};

// "ipc" or "nccl". Throws sdk::Error where the build, or the machine, has no such thing.
std::unique_ptr<Channel> make_channel(const std::string& backend, Control& control, const Settings& settings);

// RFC 4648's standard alphabet, padded: how a channel's bytes stand in JSON.
std::string base64(std::string_view bytes);

}  // namespace hexad::vllm
