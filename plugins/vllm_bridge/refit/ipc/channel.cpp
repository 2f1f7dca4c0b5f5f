#include "plugins/vllm_bridge/refit/ipc/channel.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "plugins/vllm_bridge/protocol/capabilities.hpp"
#include "plugins/vllm_bridge/refit/base64.hpp"
#include "plugins/vllm_bridge/refit/pickle.hpp"

namespace hexad::vllm {
namespace {

using Json = nlohmann::ordered_json;

using namespace refit;

std::string pickle_of(const GpuStaging& staging) {
  const CudaDriver& driver = CudaDriver::get();
  const CudaContext context(staging.device_id());
  std::array<std::byte, kIpcHandleBytes> handle{};
  std::array<std::byte, 16> uuid{};
  if (const int result = driver.ipc_handle(handle.data(), staging.address()); result != 0) {
    sdk::fail(
        HEXAD_FAILED_PRECONDITION,
        "weight update by CUDA IPC: this GPU's memory cannot be shared (cuIpcGetMemHandle gave CUDA error %d). Set "
        "policy.generation.refit_transport to disk",
        result);
  }
  CudaDriver::check(driver.device_uuid(uuid.data(), context.device()), "cuDeviceGetUuid");
  return base64(ipc_pickle(uuid_text(uuid), handle, static_cast<int64_t>(staging.size())));
}

}  // namespace

// Nothing is shared yet: a server is told what its engine cannot guess.
void IpcChannel::connect(const sdk::Call&, int64_t, std::vector<Target>& targets) {
  std::vector<Target> known, met;
  for (const Target& target : targets) {
    const auto found = met_.find(target.index);
    (found != met_.end() && found->second == target.incarnation ? known : met).push_back(target);
  }
  const auto body = [](const Target& target) {
    return capabilities_of(target.facts.version).ipc_packed_at_init ? R"({"init_info":{"packed":true}})"
                                                                    : R"({"init_info":{}})";
  };
  control_.update(met, "/init_weight_transfer_engine", body, deadline_);
  for (const Target& target : met) met_[target.index] = target.incarnation;
  targets = std::move(known);
  targets.insert(targets.end(), met.begin(), met.end());
}

void IpcChannel::send(const sdk::Call& call, const hexad_weight_list& bucket, std::vector<Target>& targets) {
  const auto slices = in_order(bucket);
  if (slices.empty()) return;
  if (staging_.reserve(slices, call.device()) || pickle_.empty()) pickle_ = pickle_of(staging_);
  for (size_t begin = 0, count = 0; begin < slices.size(); begin += count) {
    const std::vector<int64_t> sizes = staging_.fill(call, Slices(slices).subspan(begin));
    count = sizes.size();
    Json info = describe_weights(Slices(slices).subspan(begin, count));
    info["tensor_sizes"] = sizes;
    info["ipc_handles_pickled"] = pickle_;
    const auto body = [&](const Target& target) {
      Json own = info;
      if (!capabilities_of(target.facts.version).ipc_packed_at_init) own["packed"] = true;
      return Json{{"update_info", std::move(own)}}.dump();
    };
    control_.update(targets, "/update_weights", body, deadline_);
  }
}

}  // namespace hexad::vllm
