// Every process group of a run, in the order in which all ranks create them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lib/model/parallel_grid.hpp"

namespace hexad::model {

// Letters: t tensor, c context, d data, p pipeline, e expert, et expert tensor, ed expert data parallel.
enum class GroupKind {
  dp_cp,               // dense gradients and optimizer shards; the first to be made (network offload goes to it)
  intra_dp_cp,         // the part of dp_cp that one optimizer instance owns; only with several instances
  dp,                  // who reads which sample
  cp,                  // attention over a sequence
  hierarchical_cp,     // level 0: all-to-all, level 1: ring ...; only with hierarchical sizes
  mp,                  // tp x pp: gradient norm without the distributed optimizer
  tp,                  // tensor and sequence parallel
  pp,                  // point to point between stages
  embedding,           // first and last stage: tied word embeddings
  position_embedding,  // first stage
  tp_dp_cp,            // expert bias, global auxiliary loss, fp8 maxima
  tp_dp,               // likewise without cp
  tp_cp,               // auxiliary losses of one sequence
  ep,                  // token dispatch
  etp,                 // expert tensor parallel
  tp_ep,               // token dispatch by all-gather
  tp_ep_pp,            // norm of expert parameters
  edp,                 // expert gradients and optimizer shards
  intra_edp,           // within an optimizer instance; only with several instances
  inter_edp,           // across optimizer instances; only with several instances
  optimizer_instance   // gradient norm and overflow with the distributed optimizer
};

struct ProcessGroup {
  GroupKind kind;
  int64_t level = 0;  // of hierarchical_cp
  RankList ranks;     // the place in the list is the rank in the group
  // NVIDIA's name, for logs and communicator options: "DATA_PARALLEL_GROUP_WITH_CP".
  std::string description() const;
};

// parallel_state.py:initialize_model_parallel and create_hierarchical_groups, without the groups of generalised tensor
// parallelism. c10d wants every rank to take part in making each group, in this order. A group of one rank needs no
// communicator.
std::vector<ProcessGroup> process_groups(const ParallelGrid& grid);

// The groups of a kind, in order.
std::vector<RankList> groups_of_kind(const std::vector<ProcessGroup>& groups, GroupKind kind, int64_t level = 0);

}  // namespace hexad::model
