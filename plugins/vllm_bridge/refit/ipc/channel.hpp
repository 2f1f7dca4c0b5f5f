// Weights for servers on this process's own GPU: a buffer of ours that vLLM's workers map and copy from.
#pragma once
#include <map>
#include <string>

#include "modeling/refit/staging.hpp"
#include "plugins/server_bridge/refit/channel.hpp"

namespace hexad::vllm {

using namespace bridge;

// The servers need VLLM_ALLOW_INSECURE_SERIALIZATION=1: vLLM unpickles where the buffer lies.
class IpcChannel : public Channel {
 public:
  IpcChannel(Control& control, Seconds deadline, size_t buffer_bytes = size_t{256} << 20)
      : control_(control), deadline_(deadline), staging_(buffer_bytes) {}

  const char* backend() const override { return "ipc"; }
  void connect(const sdk::Call& call, int64_t version, std::vector<Target>& targets) override;
  void send(const sdk::Call& call, const hexad_weight_list& bucket, std::vector<Target>& targets) override;

 private:
  Control& control_;
  Seconds deadline_;
  refit::GpuStaging staging_;
  std::map<int, int64_t> met_;  // servers, and as what incarnation
  std::string pickle_;          // where the buffer lies, as vLLM reads it, in base64
};

}  // namespace hexad::vllm
