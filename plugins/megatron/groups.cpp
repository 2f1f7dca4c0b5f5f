#include "plugins/megatron/groups.hpp"

#include "lib/model/process_groups.hpp"
#include "modeling/backend/host_groups.hpp"

namespace hexad::megatron {

namespace {

using model::RankList;

// Of every list, cut in `parts` runs, the ranks at the same place of the runs.
std::vector<RankList> across(const std::vector<RankList>& lists, int64_t parts) {
  std::vector<RankList> result;
  for (const RankList& ranks : lists) {
    const size_t size = ranks.size() / static_cast<size_t>(parts);
    for (size_t i = 0; i < size; ++i) {
      RankList& same = result.emplace_back();
      for (size_t at = i; at < ranks.size(); at += size) same.push_back(ranks[at]);
    }
  }
  return result;
}

}  // namespace

Groups make_groups(const sdk::Call& call, const model::ParallelGrid& grid, const Settings& settings) {
  using model::GroupKind;
  const modeling::HostGroups host(call);
  const std::vector<model::ProcessGroup> all = model::process_groups(grid);
  const auto make = [&](GroupKind kind, const char* name, int64_t level = 0) {
    return host.make(model::groups_of_kind(all, kind, level), name);
  };
  Groups groups{};
  groups.rank = host.rank();
  groups.at = grid.coordinates(groups.rank);
  groups.world = host.world();
  groups.dp_cp = make(GroupKind::dp_cp, "dp_cp");
  groups.cp = make(GroupKind::cp, "cp");
  groups.cp_inner = make(GroupKind::hierarchical_cp, "cp_inner", 0);
  groups.cp_outer = make(GroupKind::hierarchical_cp, "cp_outer", 1);
  groups.tp = make(GroupKind::tp, "tp");
  groups.pp = make(GroupKind::pp, "pp");
  groups.embedding = make(GroupKind::embedding, "embedding");
  groups.tp_ep = make(GroupKind::tp_ep, "tp_ep");
  groups.edp = make(GroupKind::edp, "edp");
  groups.dp_cp_part = groups.dp_cp, groups.edp_part = groups.edp;
  if (const int64_t instances = grid.sizes().optimizer_instances; instances > 1) {
    groups.dp_cp_part = make(GroupKind::intra_dp_cp, "dp_cp_part");
    groups.dp_cp_replicas =
        host.make(across(model::groups_of_kind(all, GroupKind::dp_cp), instances), "dp_cp_replicas");
    groups.edp_part = make(GroupKind::intra_edp, "edp_part");
    groups.edp_replicas = make(GroupKind::inter_edp, "edp_replicas");
  }
  if (settings.model.moe) groups.tp_cp = make(GroupKind::tp_cp, "tp_cp");
  if (settings.model.moe) groups.tp_dp_cp = make(GroupKind::tp_dp_cp, "tp_dp_cp");
  if (settings.moe.replay != modeling::ReplaySource::none) groups.dp = make(GroupKind::dp, "dp");
  const auto tensor_groups = model::groups_of_kind(all, GroupKind::tp);
  groups.equal_heads =
      host.make(modeling::equal_head_groups(tensor_groups, settings.model.num_kv_heads), "equal_heads");
  return groups;
}

}  // namespace hexad::megatron
