// What the `policy` section says to this backend: policy.megatron_cfg, with NeMo-RL's keys.
#pragma once
#include "modeling/backend/context_settings.hpp"
#include "modeling/backend/model_settings.hpp"
#include "modeling/layout/layer_placement.hpp"
#include "modeling/layout/parallel_grid.hpp"
#include "modeling/parallel/optimizer.hpp"
#include "plugins/megatron/recompute.hpp"

namespace hexad::megatron {

struct Settings : modeling::ModelSettings {
  modeling::layout::ParallelSizes sizes;         // world: of the run
  modeling::layout::PlacementOptions placement;  // which layers a stage holds
  modeling::ContextSettings context;             // how context-parallel ranks exchange keys and values
  bool sequence_parallel = false;
  int64_t token_runs = 1;      // tp_comm_overlap: TensorParallel::token_runs
  bool gather_tokens = false;  // moe_token_dispatcher_type: allgather, in place of alltoall
  RecomputeSettings recompute;
  bool overlap_stages = false;            // overlap_p2p_comm
  bool batch_stages = true;               // batch_p2p_comm
  bool use_distributed_optimizer = true;  // masters and optimizer state are sharded over data-parallel ranks
  std::optional<int64_t> bucket_size;     // elements; absent: one bucket
  modeling::OptimizerOptions optimizer;
  bool decay_matrices_only = false;  // Megatron's rule: no weight decay for biases and vectors

  int64_t expert_tensor() const { return sizes.expert_tensor.value_or(sizes.tensor); }
  // Do tokens leave their rank on the way to their experts?
  bool dispatches() const { return model.moe && expert_tensor() * sizes.expert > 1; }
};

// Throws sdk::Error or modeling::Error: sizes that do not fit the model or `world`, what is not available, wrong values.
Settings read_settings(const sdk::Config& config, int64_t world);

}  // namespace hexad::megatron
