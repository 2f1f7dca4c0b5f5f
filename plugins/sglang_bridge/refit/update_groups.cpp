#include "plugins/sglang_bridge/refit/update_groups.hpp"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "modeling/refit/group/gloo.hpp"
#include "modeling/refit/group/nccl.hpp"
#include "modeling/refit/group/store.hpp"
#include "plugins/sglang_bridge/refit/server_ranks.hpp"

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

// What NCCL wants of a server that has another.
constexpr const char* kAdvice =
    ": give SGLang's environment that nvidia-nccl, or set LD_PRELOAD to it for its servers (sglang_cfg.env_vars)";

std::unique_ptr<refit::Staging> staging_for(bool on_gpu, size_t bytes) {
  if (on_gpu) return std::make_unique<refit::GpuStaging>(bytes);
  return std::make_unique<refit::HostStaging>(bytes);
}

std::string destroy_body(const std::string& name) { return Json{{"group_name", name}}.dump(); }

}  // namespace

UpdateGroups::UpdateGroups(Backend backend, Control& control, Seconds deadline, Seconds goodbye, std::string address,
                           size_t buffer_bytes)
    : GroupChannel(control, deadline, staging_for(backend == Backend::nccl, buffer_bytes)),
      backend_(backend),
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

std::unique_ptr<refit::Sender> UpdateGroups::join(const sdk::Call& call, const Target& target) {
  check_reaches(target, address_, kAddressKey);
  const bool on_gpu = backend_ == Backend::nccl;
  const int ranks = ranks_of(control_, target, on_gpu, deadline_) + 1;
  const std::string name = fmt::format("{}-{}", run_name_, ++made_);
  groups_[target.index] = {target, name};
  auto store = std::make_unique<refit::Store>(address_, kAddressKey);
  const Json init = {{"master_address", address_}, {"master_port", store->port()}, {"rank_offset", 1},
                     {"world_size", ranks},        {"group_name", name},           {"backend", backend()}};
  const Post ask{"/init_weights_update_group", init.dump()};
  if (on_gpu) return join_nccl(call, target, ask, std::move(store), name, ranks);
  return meet(target, ask, [&](const refit::GiveUp& give_up) {
    const refit::GlooGroup::Place place{.name = name,
                                        .address = address_,
                                        .rank = 0,
                                        .ranks = ranks,
                                        .patience = std::chrono::ceil<Milliseconds>(deadline_)};
    return std::make_unique<refit::GlooGroup>(*store, place, give_up);  // which needs the store no longer
  });
}

// Servers answer before they have met this process: they do so in the first broadcast.
std::unique_ptr<refit::Sender> UpdateGroups::join_nccl(const sdk::Call& call, const Target& target, const Post& ask,
                                                       std::unique_ptr<refit::Store> store, const std::string& name,
                                                       int ranks) {
  const refit::NcclGroup::Place place{
      .name = name, .ranks = ranks, .device_id = call.device().device_id, .advice = kAdvice};
  auto group = std::make_unique<refit::NcclGroup>(std::move(store), place);
  return meet(target, ask, [&](const refit::GiveUp&) { return std::move(group); });
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
