#include "plugins/vllm_bridge/refit/nccl/channel.hpp"

#include <nlohmann/json.hpp>

#include "modeling/refit/nccl/sender.hpp"
#include "plugins/server_bridge/refit/base64.hpp"
#include "plugins/vllm_bridge/protocol/capabilities.hpp"
#include "plugins/vllm_bridge/refit/nccl/rendezvous.hpp"

namespace hexad::vllm {
namespace {

using Json = nlohmann::ordered_json;

int workers_of(Control& control, const Target& target, Seconds deadline) {
  const Answer answer = control.get(target, "/get_world_size?include_dp=true", deadline);
  const Json json = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  if (!answer.ok() || !json.is_object() || !json.value("world_size", Json()).is_number_integer())
    sdk::fail(HEXAD_UNAVAILABLE, "/get_world_size: %s",
              answer.ok() ? answer.body.substr(0, 200).c_str() : answer.trouble().c_str());
  return json.at("world_size").get<int>();
}

}  // namespace

std::unique_ptr<refit::Sender> NcclChannel::join(const sdk::Call& call, const Target& target) {
  const Capabilities capabilities = capabilities_of(target.facts.version);
  if (!capabilities.nccl_id_at_init) check_reaches(target, address_, "policy.generation.vllm_cfg.refit_address");
  const int workers = workers_of(control_, target, deadline_);
  const refit::UniqueId id = refit::new_unique_id();
  std::unique_ptr<Rendezvous> store;  // until the workers have read the id
  Json init = {{"rank_offset", 1}, {"world_size", workers + 1}};
  if (capabilities.nccl_id_at_init) {
    init["nccl_unique_id_b64"] = base64({reinterpret_cast<const char*>(id.data()), id.size()});
  } else {
    store = std::make_unique<Rendezvous>(address_, id);
    init["master_address"] = address_, init["master_port"] = store->port();
  }
  if (capabilities.nccl_packed_at_init) init["packed"] = true, init["packed_buffer_size_bytes"] = limit_;
  return meet(target, {"/init_weight_transfer_engine", Json{{"init_info", init}}.dump()},
              [&](const refit::GiveUp& give_up) {
                return std::make_unique<refit::NcclSender>(id, workers + 1, call.device().device_id,
                                                           ": set VLLM_NCCL_SO_PATH for vLLM's workers",
                                                           /*sums=*/true, give_up);
              });
}

std::string NcclChannel::update_body(const Target& target, refit::Slices weights) const {
  Json info = refit::describe_weights(weights);
  if (!capabilities_of(target.facts.version).nccl_packed_at_init)
    info["packed"] = true, info["packed_buffer_size_bytes"] = limit_;
  return Json{{"update_info", std::move(info)}}.dump();
}

}  // namespace hexad::vllm
