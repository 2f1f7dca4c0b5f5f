#include "plugins/dtensor/groups.hpp"

#include "modeling/backend/host_groups.hpp"
#include "modeling/parallel/device_mesh.hpp"

namespace hexad::dtensor {
namespace {

using model::RankList;

// All groups along the dimensions `names`, which together hold every rank once.
std::vector<RankList> lists_along(const modeling::DeviceMesh& mesh, const std::vector<std::string>& names) {
  std::vector<RankList> lists;
  for (int64_t rank = 0; rank < mesh.world_size(); ++rank) {
    bool first = true;
    for (const std::string& name : names) first = first && mesh.coordinate(rank, name) == 0;
    if (first) lists.push_back(mesh.ranks_along(rank, names));
  }
  return lists;
}

}  // namespace

Groups make_groups(const sdk::Call& call, const Settings& settings) {
  const int64_t inner = settings.context.inner;
  const std::vector<std::string> cp = {"cp_outer", "cp_inner"};
  const modeling::DeviceMesh mesh({settings.dp_replicate, settings.dp_shard, settings.cp / inner, inner, settings.tp},
                                  {"dp_replicate", "dp_shard", cp[0], cp[1], "tp"});
  const modeling::HostGroups host(call);
  const std::vector<RankList> tensor = lists_along(mesh, {"tp"});
  Groups groups;
  groups.world = host.world();
  const std::vector<RankList> shards = lists_along(mesh, {"dp_shard", cp[0], cp[1]});
  groups.shards = shards.size() == 1 ? groups.world : host.make(shards, "shards");
  groups.replicas = host.make(lists_along(mesh, {"dp_replicate"}), "replicas");
  groups.cp = host.make(lists_along(mesh, cp), "cp");
  if (inner > 1) {
    groups.cp_inner = host.make(lists_along(mesh, {cp[1]}), cp[1]);
    groups.cp_outer = host.make(lists_along(mesh, {cp[0]}), cp[0]);
  }
  groups.tp = host.make(tensor, "tp");
  groups.equal_heads = host.make(modeling::equal_head_groups(tensor, settings.model.num_kv_heads), "equal_heads");
  if (settings.ep > 1) {
    const int64_t inside = settings.dp_shard * settings.cp * settings.tp;
    const modeling::DeviceMesh sparse({settings.dp_replicate, inside / settings.ep, settings.ep},
                                      {"dp_replicate", "expert_shards", "ep"});
    groups.ep = host.make(lists_along(sparse, {"ep"}), "ep");
    groups.expert_shards = host.make(lists_along(sparse, {"expert_shards"}), "expert_shards");
  }
  if (settings.router_replay != modeling::ReplaySource::none) {
    groups.sharing = host.make(lists_along(mesh, {cp[0], cp[1], "tp"}), "sharing");
    groups.data_parallel = host.make(lists_along(mesh, {"dp_replicate", "dp_shard"}), "data_parallel");
  }
  groups.dp_rank =
      mesh.coordinate(host.rank(), "dp_replicate") * settings.dp_shard + mesh.coordinate(host.rank(), "dp_shard");
  groups.dp_size = settings.dp_replicate * settings.dp_shard;
  return groups;
}

}  // namespace hexad::dtensor
