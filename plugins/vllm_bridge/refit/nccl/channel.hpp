// Weights for servers on other GPUs: broadcast by NCCL, a communicator a server, whose rank 0 is this process.
// Protocol: vLLM's nccl_engine.py and packed_tensor.py.
#pragma once
#include <map>
#include <string>

#include "plugins/server_bridge/refit/channel.hpp"
#include "plugins/vllm_bridge/refit/nccl/library.hpp"
#include "plugins/vllm_bridge/refit/staging.hpp"

namespace hexad::vllm {

using namespace bridge;

class NcclChannel : public Channel {
 public:
  // `address`: of this host, IPv4, where servers before 0.30 find the communicator's id.
  NcclChannel(Control& control, Seconds deadline, std::string address, size_t buffer_bytes = size_t{256} << 20)
      : control_(control),
        deadline_(deadline),
        address_(std::move(address)),
        limit_(buffer_bytes),
        staging_(buffer_bytes) {}

  const char* backend() const override { return "nccl"; }
  void connect(const sdk::Call& call, std::vector<Target>& targets) override;
  void send(const sdk::Call& call, const hexad_weight_list& bucket, std::vector<Target>& targets) override;

 private:
  struct Member {
    int64_t incarnation = 0;
    std::unique_ptr<NcclSender> sender;
  };
  std::unique_ptr<NcclSender> join(const sdk::Call& call, const Target& target);
  void lose(const Target& target, const std::string& why);
  void broadcast(size_t bytes, const nlohmann::ordered_json& weights, std::vector<Target>& targets);

  Control& control_;
  Seconds deadline_;
  std::string address_;
  size_t limit_;
  Staging staging_;
  std::map<int, Member> members_;  // by server
};

}  // namespace hexad::vllm
