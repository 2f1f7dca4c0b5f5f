#include "plugins/sglang_bridge/refit/update_groups.hpp"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "modeling/refit/group/gloo.hpp"
#include "modeling/refit/group/store.hpp"

namespace hexad::sglang {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kAddressKey = "policy.generation.sglang_cfg.refit_address";
constexpr const char* kDestroy = "/destroy_weights_update_group";

// Groups that a trainer before this one left behind keep their names on a server, which takes none twice.
std::string name_of_run() {
  std::random_device random;
  return fmt::format("hexad-{:08x}{:08x}", random(), random());
}

// Ranks of a server that take weights: those of its tensor parallelism.
int workers_of(Control& control, const Target& target, Seconds deadline) {
  const Answer answer = control.get(target, "/server_info", deadline);
  const Json json = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  if (!answer.ok() || !json.is_object()) {
    sdk::fail(HEXAD_UNAVAILABLE, "/server_info: %s",
              answer.ok() ? answer.body.substr(0, 200).c_str() : answer.trouble().c_str());
  }
  const auto size = [&](const char* name) {
    const Json value = json.value(name, Json(1));
    const int64_t ranks = value.is_number_integer() ? value.get<int64_t>() : 0;
    if (ranks < 1 || ranks > 65536)
      sdk::fail(HEXAD_UNAVAILABLE, "/server_info: %s: got %s, wanted a number of ranks", name, value.dump().c_str());
    return static_cast<int>(ranks);
  };
  for (const char* other : {"dp_size", "pp_size"}) {
    if (size(other) == 1) continue;
    sdk::fail(HEXAD_UNAVAILABLE,
              "its %s is %d: wanted 1, as SGLang's groups for weights have ranks of tensor parallelism alone. Set "
              "policy.generation.refit_transport to disk",
              other, size(other));
  }
  return size("tp_size");
}

std::string destroy_body(const std::string& name) { return Json{{"group_name", name}}.dump(); }

}  // namespace

UpdateGroups::UpdateGroups(Control& control, Seconds deadline, Seconds goodbye, std::string address,
                           size_t buffer_bytes)
    : GroupChannel(control, deadline, std::make_unique<refit::HostStaging>(buffer_bytes)),
      goodbye_(goodbye),
      address_(std::move(address)),
      run_name_(name_of_run()) {}

UpdateGroups::~UpdateGroups() {
  std::vector<Target> targets;
  for (const auto& [index, group] : groups_) targets.push_back(group.target);
  const auto body = [&](const Target& target) { return destroy_body(groups_.at(target.index).name); };
  for (auto& answer : control_.begin_post(targets, kDestroy, body, goodbye_)) answer.wait();
}

void UpdateGroups::connect(const sdk::Call& call, int64_t version, std::vector<Target>& targets) {
  version_ = std::to_string(version);
  GroupChannel::connect(call, version, targets);
}

std::unique_ptr<refit::Sender> UpdateGroups::join(const sdk::Call&, const Target& target) {
  check_reaches(target, address_, kAddressKey);
  const int ranks = workers_of(control_, target, deadline_) + 1;
  const std::string name = fmt::format("{}-{}", run_name_, ++made_);
  groups_[target.index] = {target, name};
  const refit::Store store(address_, kAddressKey);  // until the server has found its peer
  const Json init = {{"master_address", address_}, {"master_port", store.port()}, {"rank_offset", 1},
                     {"world_size", ranks},        {"group_name", name},          {"backend", "gloo"}};
  return meet(target, {"/init_weights_update_group", init.dump()}, [&](const refit::GiveUp& give_up) {
    const refit::GlooGroup::Place place{.name = name,
                                        .address = address_,
                                        .rank = 0,
                                        .ranks = ranks,
                                        .patience = std::chrono::ceil<Milliseconds>(deadline_)};
    return std::make_unique<refit::GlooGroup>(store, place, give_up);
  });
}

// Without flush_cache: a flush that a running request forbids fails the call. /flush_cache is asked for it.
std::string UpdateGroups::update_body(const Target& target, refit::Slices weights) const {
  const Json described = refit::describe_weights(weights);
  return Json{{"names", described.at("names")},
              {"dtypes", described.at("dtype_names")},
              {"shapes", described.at("shapes")},
              {"group_name", groups_.at(target.index).name},
              {"flush_cache", false},
              {"weight_version", version_},
              {"load_format", "flattened_bucket"}}
      .dump();
}

// Its end of the group closes, and what is under way to it fails here: nothing else ends it before its time.
void UpdateGroups::leave(const Target& target) {
  const auto group = groups_.find(target.index);
  if (group == groups_.end()) return;
  control_.post({target}, {kDestroy, destroy_body(group->second.name)}, goodbye_);
  groups_.erase(group);
}

}  // namespace hexad::sglang
