#include "plugins/vllm_bridge/refit/channel.hpp"

#include "plugins/vllm_bridge/refit/ipc/channel.hpp"
#include "plugins/vllm_bridge/refit/nccl/channel.hpp"

namespace hexad::vllm {

std::unique_ptr<Channel> make_channel(const std::string& backend, Control& control, const Settings& settings) {
  if (backend == "ipc") return std::make_unique<IpcChannel>(control, settings.deadlines.control);
  return std::make_unique<NcclChannel>(control, settings.deadlines.control, settings.refit_address);
}

}  // namespace hexad::vllm
