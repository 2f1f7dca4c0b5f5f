#include "plugins/sglang_bridge/refit/ipc_channel.hpp"

#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "modeling/refit/weight_names.hpp"
#include "plugins/server_bridge/refit/base64.hpp"
#include "plugins/server_bridge/refit/own_host.hpp"
#include "plugins/sglang_bridge/refit/pickle.hpp"
#include "plugins/sglang_bridge/refit/server_ranks.hpp"

namespace hexad::sglang {

using Json = nlohmann::ordered_json;

// A server that does not see this GPU ends when it is told of its memory: what can be known is looked at before.
void IpcChannel::connect(const sdk::Call&, int64_t version, std::vector<Target>& targets) {
  version_ = std::to_string(version);
  std::erase_if(targets, [&](const Target& target) {
    const auto known = servers_.find(target.index);
    if (known != servers_.end() && known->second.incarnation == target.incarnation) return false;
    try {
      check_own_host(target.url);
      servers_[target.index] = {target.incarnation, ranks_of(control_, target, /*on_gpu=*/true, deadline_)};
      return false;
    } catch (const std::exception& error) {
      control_.spoil(target, std::string("did not take weights: ") + error.what());
      return true;
    }
  });
}

// Without flush_cache: a flush that a running request forbids fails the call. /flush_cache is asked for it.
std::string IpcChannel::update_body(const Target& target, const std::string& pickle) const {
  const auto ranks = static_cast<size_t>(servers_.at(target.index).ranks);
  return Json{{"serialized_named_tensors", std::vector<std::string>(ranks, pickle)},
              {"load_format", "flattened_bucket"},
              {"flush_cache", false},
              {"weight_version", version_}}
      .dump();
}

void IpcChannel::send(const sdk::Call& call, const hexad_weight_list& bucket, std::vector<Target>& targets) {
  const auto slices = refit::in_order(bucket);
  for (size_t begin = 0, count = 0; begin < slices.size() && !targets.empty(); begin += count) {
    const auto rest = refit::Slices(slices).subspan(begin);
    Buffer& buffer = buffers_[turn_ ^= 1];
    if (buffer.staging.reserve(rest, call.device()) || !buffer.memory) buffer.memory = share(buffer.staging);
    const std::vector<int64_t> sizes = buffer.staging.fill(call, rest);
    count = sizes.size();
    const std::string pickle = base64(bucket_pickle(*buffer.memory, rest.first(count), sizes));
    control_.update(
        targets, "/update_weights_from_tensor", [&](const Target& target) { return update_body(target, pickle); },
        deadline_);
  }
}

}  // namespace hexad::sglang
