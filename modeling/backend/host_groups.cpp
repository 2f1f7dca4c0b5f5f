#include "modeling/backend/host_groups.hpp"

#include <algorithm>
#include <map>
#include <mutex>

namespace hexad::modeling {
namespace {

std::string instance_suffix(const std::string& owner) {
  static std::mutex mutex;
  static std::map<std::string, int> instances;  // made in the same order on every rank
  const std::lock_guard lock(mutex);
  return "." + owner + std::to_string(instances[owner]++);
}

}  // namespace

int64_t world_size(const sdk::Call& call) {
  hexad_comm* world = call.comm("world");
  return world ? call.host()->comm_size(world) : 1;
}

HostGroups::HostGroups(const sdk::Call& call, const std::string& owner)
    : call_(call), world_(native(call.comm("world"))), suffix_(instance_suffix(owner)) {}

Group HostGroups::native(hexad_comm* comm) const {
  if (!comm) return {};
  void* group = nullptr;
  call_.check(call_.host()->comm_native(call_.raw(), comm, "c10d", &group));
  return Group(static_cast<c10d::ProcessGroup*>(group));
}

Group HostGroups::make(const std::vector<model::RankList>& lists, const std::string& name) const {
  Group mine;
  for (const model::RankList& ranks : lists) {
    const int64_t size = static_cast<int64_t>(ranks.size());
    if (size < 2) continue;
    hexad_comm* comm = nullptr;
    call_.check(
        call_.host()->comm_new(call_.raw(), ranks.data(), static_cast<int32_t>(size), (name + suffix_).c_str(), &comm));
    if (std::find(ranks.begin(), ranks.end(), rank()) != ranks.end()) mine = native(comm);
  }
  return mine;
}

std::vector<model::RankList> equal_head_groups(const std::vector<model::RankList>& tensor_groups, int64_t kv_heads) {
  std::vector<model::RankList> groups;
  for (const model::RankList& ranks : tensor_groups) {
    const int64_t copies = std::max<int64_t>(1, static_cast<int64_t>(ranks.size()) / kv_heads);
    for (auto first = ranks.begin(); copies > 1 && first != ranks.end(); first += copies)
      groups.emplace_back(first, first + copies);
  }
  return groups;
}

}  // namespace hexad::modeling
