// Weights for servers on other GPUs: broadcast by NCCL. Protocol: vLLM's nccl_engine.py and packed_tensor.py.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "plugins/server_bridge/refit/group_channel.hpp"

namespace hexad::vllm {

using namespace bridge;

class NcclChannel : public GroupChannel {
 public:
  // `address`: of this host, IPv4, where servers before 0.30 find the communicator's id.
  NcclChannel(Control& control, Seconds deadline, std::string address, size_t buffer_bytes = size_t{256} << 20)
      : GroupChannel(control, deadline, std::make_unique<refit::GpuStaging>(buffer_bytes)),
        address_(std::move(address)),
        limit_(buffer_bytes) {}

  const char* backend() const override { return "nccl"; }

 private:
  std::unique_ptr<refit::Sender> join(const sdk::Call& call, const Target& target) override;
  std::string update_path() const override { return "/update_weights"; }
  std::string update_body(const Target& target, refit::Slices weights) const override;

  std::string address_;
  size_t limit_;  // of a message: what the staging buffer holds is not more, or one weight
};

}  // namespace hexad::vllm
