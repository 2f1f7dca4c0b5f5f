#include "plugins/megatron/groups.hpp"

#include "modeling/backend/host_groups.hpp"
#include "modeling/layout/process_groups.hpp"

namespace hexad::megatron {

Groups make_groups(const sdk::Call& call, const modeling::layout::ParallelGrid& grid, int64_t kv_heads) {
  using modeling::layout::GroupKind;
  const modeling::HostGroups host(call);
  const std::vector<modeling::layout::ProcessGroup> all = modeling::layout::process_groups(grid);
  const auto make = [&](GroupKind kind, const char* name, int64_t level = 0) {
    return host.make(modeling::layout::groups_of_kind(all, kind, level), name);
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
  const auto tensor_groups = modeling::layout::groups_of_kind(all, GroupKind::tp);
  groups.equal_heads = host.make(modeling::equal_head_groups(tensor_groups, kv_heads), "equal_heads");
  return groups;
}

}  // namespace hexad::megatron
