#include "plugins/vllm_bridge/refit/nccl/channel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "plugins/vllm_bridge/protocol/capabilities.hpp"
#include "plugins/vllm_bridge/refit/base64.hpp"
#include "plugins/vllm_bridge/refit/nccl/rendezvous.hpp"

namespace hexad::vllm {
namespace {

using Json = nlohmann::ordered_json;

// After the deadline, or when the server has answered that it failed.
GiveUp give_up_when(std::shared_future<Answer> answer, Seconds deadline) {
  const auto end = Clock::now() + std::chrono::ceil<Milliseconds>(deadline);
  return [answer = std::move(answer), end, deadline]() -> std::string {
    if (answer.wait_for(Milliseconds(0)) == std::future_status::ready && !answer.get().ok())
      return "the server says " + answer.get().trouble();
    return Clock::now() > end ? fmt::format("vLLM's workers did not take part in {:.0f} s", deadline.count()) : "";
  };
}

int workers_of(Control& control, const Target& target, Seconds deadline) {
  const Answer answer = control.get(target, "/get_world_size?include_dp=true", deadline);
  const Json json = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  if (!answer.ok() || !json.is_object() || !json.value("world_size", Json()).is_number_integer())
    sdk::fail(HEXAD_UNAVAILABLE, "/get_world_size: %s",
              answer.ok() ? answer.body.substr(0, 200).c_str() : answer.trouble().c_str());
  return json.at("world_size").get<int>();
}

}  // namespace

std::unique_ptr<NcclSender> NcclChannel::join(const sdk::Call& call, const Target& target) {
  const auto here = [](const std::string& text) {
    return text.find("127.0.0.1") != std::string::npos || text.find("localhost") != std::string::npos;
  };
  if (!capabilities_of(target.facts.version).nccl_id_at_init && here(address_) && !here(target.url)) {
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "policy.generation.vllm_cfg.refit_address: got %s, where a server on another host cannot meet this one: "
              "wanted an address of this host that it reaches",
              address_.c_str());
  }
  const int workers = workers_of(control_, target, deadline_);
  const UniqueId id = new_unique_id();
  std::unique_ptr<Rendezvous> store;  // until the workers have read the id
  Json init = {{"rank_offset", 1}, {"world_size", workers + 1}};
  if (capabilities_of(target.facts.version).nccl_id_at_init) {
    init["nccl_unique_id_b64"] = base64({reinterpret_cast<const char*>(id.data()), id.size()});
  } else {
    store = std::make_unique<Rendezvous>(address_, id);
    init["master_address"] = address_, init["master_port"] = store->port();
  }
  if (capabilities_of(target.facts.version).nccl_packed_at_init)
    init["packed"] = true, init["packed_buffer_size_bytes"] = limit_;
  const std::string body = Json{{"init_info", init}}.dump();
  std::vector<std::future<Answer>> answers = control_.begin_post(
      {target}, "/init_weight_transfer_engine", [&](const Target&) { return body; }, deadline_);
  const std::shared_future<Answer> answer = answers[0].share();
  auto sender = std::make_unique<NcclSender>(id, workers + 1, call.device().device_id, give_up_when(answer, deadline_));
  if (!answer.get().ok())
    sdk::fail(HEXAD_UNAVAILABLE, "/init_weight_transfer_engine: %s", answer.get().trouble().c_str());
  return sender;
}

void NcclChannel::lose(const Target& target, const std::string& why) {
  members_.erase(target.index);
  control_.spoil(target, "did not take weights: " + why);
}

void NcclChannel::connect(const sdk::Call& call, std::vector<Target>& targets) {
  std::erase_if(targets, [&](const Target& target) {
    const auto known = members_.find(target.index);
    if (known != members_.end() && known->second.incarnation == target.incarnation) return false;
    members_.erase(target.index);
    try {
      members_[target.index] = {target.incarnation, join(call, target)};
      return false;
    } catch (const std::exception& error) {
      lose(target, error.what());
      return true;
    }
  });
}

void NcclChannel::send(const sdk::Call& call, const hexad_weight_list& bucket, std::vector<Target>& targets) {
  const auto slices = in_order(bucket);
  if (slices.empty()) return;
  staging_.reserve(slices);
  for (size_t begin = 0, count = 0; begin < slices.size(); begin += count) {
    const std::vector<int64_t> sizes = staging_.fill(call, Slices(slices).subspan(begin));
    count = sizes.size();
    const auto bytes = static_cast<size_t>(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}));
    broadcast(bytes, describe_weights(Slices(slices).subspan(begin, count)), targets);
  }
}

// One message a chunk: what the staging buffer holds is not more than `limit_`, or one weight.
void NcclChannel::broadcast(size_t bytes, const Json& weights, std::vector<Target>& targets) {
  const auto body = [&](const Target& target) {
    Json info = weights;
    if (!capabilities_of(target.facts.version).nccl_packed_at_init)
      info["packed"] = true, info["packed_buffer_size_bytes"] = limit_;
    return Json{{"update_info", std::move(info)}}.dump();
  };
  std::vector<std::future<Answer>> pending = control_.begin_post(targets, "/update_weights", body, deadline_);
  std::vector<GiveUp> give_up;
  std::vector<std::shared_future<Answer>> answers;
  for (auto& answer : pending) {
    answers.push_back(answer.share());
    give_up.push_back(give_up_when(answers.back(), deadline_));
  }
  std::vector<std::string> trouble(targets.size());
  const auto each = [&](const auto& step) {
    for (size_t i = 0; i < targets.size(); ++i) {
      if (!trouble[i].empty()) continue;
      try {
        step(i, *members_.at(targets[i].index).sender);
      } catch (const std::exception& error) {
        trouble[i] = error.what();
      }
    }
  };
  each([&](size_t i, NcclSender& sender) { sender.broadcast(staging_.address(), bytes, give_up[i]); });
  each([&](size_t i, NcclSender& sender) { sender.wait(give_up[i]); });
  each([&](size_t i, NcclSender&) {
    if (!answers[i].get().ok()) trouble[i] = "/update_weights: " + answers[i].get().trouble();
  });
  std::vector<Target> left;
  for (size_t i = 0; i < targets.size(); ++i)
    trouble[i].empty() ? left.push_back(targets[i]) : lose(targets[i], trouble[i]);
  targets = std::move(left);
}

}  // namespace hexad::vllm
