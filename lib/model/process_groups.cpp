#include "lib/model/process_groups.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace hexad::model {
namespace {

class GroupList {
 public:
  explicit GroupList(const ParallelGrid& grid) : grid_(grid), sizes_(grid.sizes()) {}

  std::vector<ProcessGroup> build() {
    using enum Axis;
    add_gradient_groups();
    add(GroupKind::dp, grid_.dense(), {dp});
    for (const RankList& ranks : grid_.dense().groups({cp})) {
      add(GroupKind::cp, ranks);
      add_levels(ranks, sizes_.hierarchical_context,
                 [&](size_t level, RankList part) { add(GroupKind::hierarchical_cp, std::move(part), level); });
    }
    add(GroupKind::mp, grid_.dense(), {tp, pp});
    add(GroupKind::tp, grid_.dense(), {tp});
    add_pipeline_groups();
    add(GroupKind::tp_dp_cp, grid_.dense(), {tp, dp, cp});
    add(GroupKind::tp_dp, grid_.dense(), {tp, dp});
    add(GroupKind::tp_cp, grid_.dense(), {tp, cp});
    add(GroupKind::ep, grid_.expert(), {ep});
    add(GroupKind::etp, grid_.expert(), {tp});
    add(GroupKind::tp_ep, grid_.expert(), {tp, ep});
    add(GroupKind::tp_ep_pp, grid_.expert(), {tp, ep, pp});
    add_expert_gradient_groups();
    add_optimizer_instances();
    return std::move(groups_);
  }

 private:
  void add(GroupKind kind, RankList ranks, size_t level = 0) {
    groups_.push_back({kind, static_cast<int64_t>(level), std::move(ranks)});
  }
  void add(GroupKind kind, const RankGrid& grid, const std::vector<Axis>& axes) {
    for (RankList& ranks : grid.groups(axes)) add(kind, std::move(ranks));
  }

  void add_gradient_groups() {
    for (const RankList& ranks : grid_.dense().groups({Axis::dp, Axis::cp})) {
      add(GroupKind::dp_cp, ranks);
      if (sizes_.optimizer_instances == 1) continue;
      const size_t part = ranks.size() / sizes_.optimizer_instances;
      for (size_t begin = 0; begin < ranks.size(); begin += part) {
        add(GroupKind::intra_dp_cp, RankList(ranks.begin() + begin, ranks.begin() + begin + part));
      }
    }
  }

  void add_pipeline_groups() {
    for (const RankList& ranks : grid_.dense().groups({Axis::pp})) {
      add(GroupKind::pp, ranks);
      add(GroupKind::embedding, ranks.size() == 1 ? ranks : RankList{ranks.front(), ranks.back()});
      add(GroupKind::position_embedding, {ranks.front()});
    }
  }

  void add_expert_gradient_groups() {
    const int64_t instances = sizes_.optimizer_instances;
    for (const RankList& ranks : grid_.expert().groups({Axis::dp})) {
      add(GroupKind::edp, ranks);
      if (instances == 1) continue;
      add_levels(ranks, {grid_.expert_data_parallel() / instances, instances}, [&](size_t level, RankList part) {
        add(level == 0 ? GroupKind::intra_edp : GroupKind::inter_edp, std::move(part));
      });
    }
  }

  // Whole model replicas that one optimizer instance spans.
  void add_optimizer_instances() {
    const int64_t replicas = grid_.expert_data_parallel() / sizes_.optimizer_instances;
    RankList ranks;
    int64_t count = 0;
    for (const RankList& replica : grid_.expert().groups({Axis::tp, Axis::ep, Axis::pp})) {
      ranks.insert(ranks.end(), replica.begin(), replica.end());
      if (++count % replicas == 0) add(GroupKind::optimizer_instance, std::exchange(ranks, {}));
    }
  }

  // `ranks` as a row-major array whose last dimension is sizes[0]: at each level the groups along one dimension.
  template <typename Add>
  static void add_levels(const RankList& ranks, const std::vector<int64_t>& sizes, Add add) {
    size_t stride = 1;
    for (size_t level = 0; level < sizes.size(); ++level) {
      const size_t size = sizes[level];
      for (size_t begin = 0; begin < ranks.size(); begin += stride * size) {
        for (size_t offset = 0; offset < stride; ++offset) {
          RankList part;
          for (size_t i = 0; i < size; ++i) part.push_back(ranks[begin + offset + i * stride]);
          add(level, std::move(part));
        }
      }
      stride *= size;
    }
  }

  const ParallelGrid& grid_;
  const ParallelSizes& sizes_;
  std::vector<ProcessGroup> groups_;
};

}  // namespace

std::string ProcessGroup::description() const {
  switch (kind) {
    case GroupKind::dp_cp: return "DATA_PARALLEL_GROUP_WITH_CP";
    case GroupKind::intra_dp_cp: return "INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP";
    case GroupKind::dp: return "DATA_PARALLEL_GROUP";
    case GroupKind::cp: return "CONTEXT_PARALLEL_GROUP";
    case GroupKind::hierarchical_cp: return fmt::format("HIERARCHICAL_CONTEXT_PARALLEL_GROUP_L{}", level);
    case GroupKind::mp: return "MODEL_PARALLEL_GROUP";
    case GroupKind::tp: return "TENSOR_MODEL_PARALLEL_GROUP";
    case GroupKind::pp: return "PIPELINE_MODEL_PARALLEL_GROUP";
    case GroupKind::embedding: return "EMBEDDING_GROUP";
    case GroupKind::position_embedding: return "POSITION_EMBEDDING_GROUP";
    case GroupKind::tp_dp_cp: return "TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP";
    case GroupKind::tp_dp: return "TENSOR_AND_DATA_PARALLEL_GROUP";
    case GroupKind::tp_cp: return "TENSOR_AND_CONTEXT_PARALLEL_GROUP";
    case GroupKind::ep: return "EXPERT_MODEL_PARALLEL_GROUP";
    case GroupKind::etp: return "EXPERT_TENSOR_PARALLEL_GROUP";
    case GroupKind::tp_ep: return "EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP";
    case GroupKind::tp_ep_pp: return "EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP";
    case GroupKind::edp: return "EXPERT_DATA_PARALLEL_GROUP";
    case GroupKind::intra_edp: return "HIERARCHICAL_EXPERT_DATA_PARALLEL_GROUP_L0";
    case GroupKind::inter_edp: return "HIERARCHICAL_EXPERT_DATA_PARALLEL_GROUP_L1";
    case GroupKind::optimizer_instance: return "INTRA_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP";
  }
  return {};
}

std::vector<ProcessGroup> process_groups(const ParallelGrid& grid) { return GroupList(grid).build(); }

std::vector<RankList> groups_of_kind(const std::vector<ProcessGroup>& groups, GroupKind kind, int64_t level) {
  std::vector<RankList> found;
  for (const ProcessGroup& group : groups) {
    if (group.kind == kind && group.level == level) found.push_back(group.ranks);
  }
  return found;
}

}  // namespace hexad::model
