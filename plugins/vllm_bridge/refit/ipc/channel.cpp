#include "plugins/vllm_bridge/refit/ipc/channel.hpp"

#include <nlohmann/json.hpp>

#include "plugins/server_bridge/refit/base64.hpp"
#include "plugins/vllm_bridge/protocol/capabilities.hpp"
#include "plugins/vllm_bridge/refit/pickle.hpp"

namespace hexad::vllm {

using Json = nlohmann::ordered_json;
using namespace refit;

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
  if (staging_.reserve(slices, call.device()) || pickle_.empty()) pickle_ = base64(ipc_pickle(share(staging_)));
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
