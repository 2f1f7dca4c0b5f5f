#include "plugins/megatron/groups.hpp"

#include <algorithm>
#include <atomic>

#include "modeling/layout/process_groups.hpp"

namespace hexad::megatron {
namespace {

namespace layout = modeling::layout;
using layout::GroupKind;

modeling::Group native(const sdk::Call& call, hexad_comm* comm) {
  if (!comm) return {};
  void* group = nullptr;
  call.check(call.host()->comm_native(call.raw(), comm, "c10d", &group));
  return modeling::Group(static_cast<c10d::ProcessGroup*>(group));
}

// Makes the group on every rank of the world; its members get it.
modeling::Group make(const sdk::Call& call, const layout::RankList& ranks, const std::string& name, int64_t rank) {
  if (ranks.size() < 2) return {};
  hexad_comm* comm = nullptr;
  call.check(call.host()->comm_new(call.raw(), ranks.data(), static_cast<int32_t>(ranks.size()), name.c_str(), &comm));
  const bool member = std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
  return member ? native(call, comm) : modeling::Group();
}

// Runs of tensor-parallel ranks that hold the same key/value heads.
std::vector<layout::RankList> equal_head_groups(const std::vector<layout::RankList>& tensor_groups, int64_t kv_heads) {
  std::vector<layout::RankList> groups;
  for (const layout::RankList& ranks : tensor_groups) {
    const size_t copies = std::max<size_t>(1, ranks.size() / static_cast<size_t>(kv_heads));
    for (size_t first = 0; copies > 1 && first < ranks.size(); first += copies)
      groups.emplace_back(ranks.begin() + first, ranks.begin() + first + copies);
  }
  return groups;
}

}  // namespace

int64_t world_size(const sdk::Call& call) {
  hexad_comm* world = call.comm("world");
  return world ? call.host()->comm_size(world) : 1;
}

Groups make_groups(const sdk::Call& call, const layout::ParallelGrid& grid, int64_t kv_heads) {
  // A name is given once in the life of a process; instances are made in the same order on every rank.
  static std::atomic<int> instances = 0;
  const std::string suffix = "." + std::to_string(instances++);
  hexad_comm* world = call.comm("world");
  Groups groups{};
  groups.rank = world ? call.host()->comm_rank(world) : 0;
  groups.at = grid.coordinates(groups.rank);
  groups.world = native(call, world);
  const std::vector<layout::ProcessGroup> all = layout::process_groups(grid);
  const auto of_kind = [&](GroupKind kind, const char* name) {
    modeling::Group mine;
    for (const layout::RankList& ranks : layout::groups_of_kind(all, kind)) {
      const modeling::Group made = make(call, ranks, name + suffix, groups.rank);
      if (made.size() > 1) mine = made;
    }
    return mine;
  };
  groups.dp_cp = of_kind(GroupKind::dp_cp, "dp_cp");
  groups.cp = of_kind(GroupKind::cp, "cp");
  groups.tp = of_kind(GroupKind::tp, "tp");
  groups.pp = of_kind(GroupKind::pp, "pp");
  groups.embedding = of_kind(GroupKind::embedding, "embedding");
  groups.tp_ep = of_kind(GroupKind::tp_ep, "tp_ep");
  groups.edp = of_kind(GroupKind::edp, "edp");
  for (const layout::RankList& ranks : equal_head_groups(layout::groups_of_kind(all, GroupKind::tp), kv_heads)) {
    const modeling::Group made = make(call, ranks, "equal_heads" + suffix, groups.rank);
    if (made.size() > 1) groups.equal_heads = made;
  }
  return groups;
}

}  // namespace hexad::megatron
