// Weights for SGLang servers on this process's own GPU: buffers of ours that its ranks map and copy from. Protocol:
// SGLang 0.5.23's /update_weights_from_tensor with load_format flattened_bucket.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "modeling/refit/staging.hpp"
#include "plugins/server_bridge/refit/channel.hpp"
#include "plugins/server_bridge/refit/ipc/shared_memory.hpp"

namespace hexad::sglang {

using namespace bridge;

class IpcChannel : public Channel {
 public:
  // `buffer_bytes`: of both buffers together, or twice the largest weight.
  IpcChannel(Control& control, Seconds deadline, size_t buffer_bytes = size_t{256} << 20)
      : control_(control), deadline_(deadline), buffers_{Buffer(buffer_bytes / 2), Buffer(buffer_bytes / 2)} {}

  const char* backend() const override { return "ipc"; }
  // Asks each server how many ranks it has.
  void connect(const sdk::Call& call, int64_t version, std::vector<Target>& targets) override;
  void send(const sdk::Call& call, const hexad_weight_list& bucket, std::vector<Target>& targets) override;

 private:
  struct Server {
    int64_t incarnation = 0;
    int ranks = 0;
  };
  struct Buffer {
    explicit Buffer(size_t bytes) : staging(bytes) {}
    refit::GpuStaging staging;
    std::optional<SharedMemory> memory;  // where it lies
  };
  std::string update_body(const Target& target, const std::string& pickle) const;

  Control& control_;
  const Seconds deadline_;
  std::string version_;
  std::map<int, Server> servers_;
  // In turn: a rank copies from one until it takes up the next call, which it may do after its server has answered; a
  // server answers the next when every rank has come to it (SGLang's scheduler_components/weight_updater.py).
  std::array<Buffer, 2> buffers_;
  size_t turn_ = 0;
};

}  // namespace hexad::sglang
