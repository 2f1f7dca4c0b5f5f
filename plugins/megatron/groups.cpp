#include "plugins/megatron/groups.hpp"

#include "lib/model/process_groups.hpp"
#include "modeling/backend/host_groups.hpp"

namespace hexad::megatron {

namespace {

using model::RankList;

// Every list cut in `parts` runs; or, with `across`, the ranks at the same place of the runs.
std::vector<RankList> cut(const std::vector<RankList>& lists, int64_t parts, bool across) {
  std::vector<RankList> result;
  for (const RankList& ranks : lists) {
    const size_t count = static_cast<size_t>(parts), size = ranks.size() / count;
    for (size_t i = 0; i < (across ? size : count); ++i) {
      RankList part;
      for (size_t j = 0; j < (across ? count : size); ++j) part.push_back(ranks[across ? j * size + i : i * size + j]);
      result.push_back(std::move(part));
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
    const auto dense = model::groups_of_kind(all, GroupKind::dp_cp),
               experts = model::groups_of_kind(all, GroupKind::edp);
    groups.dp_cp_part = host.make(cut(dense, instances, false), "dp_cp_part");
    groups.dp_cp_replicas = host.make(cut(dense, instances, true), "dp_cp_replicas");
    groups.edp_part = host.make(cut(experts, instances, false), "edp_part");
    groups.edp_replicas = host.make(cut(experts, instances, true), "edp_replicas");
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
