// What the `policy` section says to this backend: policy.megatron_cfg, with NeMo-RL's keys.
#pragma once
#include <optional>

#include "lib/model/layer_placement.hpp"
#include "lib/model/parallel_grid.hpp"
#include "modeling/backend/router_replay.hpp"
#include "modeling/backend/settings/context_settings.hpp"
#include "modeling/backend/settings/model_settings.hpp"
#include "modeling/moe/router.hpp"
#include "modeling/parallel/optimizer.hpp"
#include "plugins/megatron/recompute.hpp"

namespace hexad::megatron {

// The keys of policy.megatron_cfg about experts: moe_*, freeze_moe_router; and policy.router_replay.
struct MoeSettings {
  modeling::RouterConfig router;
  std::optional<at::ScalarType> router_dtype = at::kDouble;  // of the logits; absent: the activations'
  bool freeze_router = false;                                // its weight is not trained
  double bias_update_rate = 0;                               // of the expert bias, once a step
  bool gather_tokens = false;   // moe_token_dispatcher_type: allgather, in place of alltoall
  bool overlap_shared = false;  // shared experts are computed while tokens travel
  modeling::ReplaySource replay = modeling::ReplaySource::none;

  bool balances() const { return router.aux_loss + router.seq_aux_loss + router.global_aux_loss + router.z_loss > 0; }
};

// Also applies the keys that replace what the model's config.json says about routing to `model`. Throws sdk::Error or
// modeling::Error: wrong values, contradictions.
MoeSettings read_moe_settings(const sdk::Config& config, modeling::ModelConfig& model);

// What data-parallel ranks share of masters and optimizer state, gradients and parameters
// (data_parallel_sharding_strategy): each form shares what the one before it does, and more.
enum class Sharding { no_shard, optim, optim_grads, optim_grads_params };

struct Settings : modeling::ModelSettings {
  model::ParallelSizes sizes;         // world: of the run
  model::PlacementOptions placement;  // which layers a stage holds
  modeling::ContextSettings context;  // how context-parallel ranks exchange keys and values
  bool sequence_parallel = false;
  int64_t token_runs = 1;  // tp_comm_overlap: TensorParallel::token_runs
  MoeSettings moe;
  RecomputeSettings recompute;
  bool overlap_stages = false;         // overlap_p2p_comm
  bool batch_stages = true;            // batch_p2p_comm
  std::optional<int64_t> stage_group;  // microbatch_group_size_per_vp_stage
  Sharding sharding = Sharding::optim;
  std::optional<int64_t> bucket_size;          // elements; absent: the default of modeling/layout/buffer_layout.hpp
  bool overlap_grad_reduce = true;             // a bucket is reduced when its last gradient is there, not at the end
  bool overlap_param_gather = true;            // updated parameters are waited for where they are used
  at::ScalarType gradient_dtype = at::kFloat;  // that micro-batches add to, and that is reduced
  at::ScalarType main_gradient_dtype = at::kFloat;  // that the optimizer reads
  at::ScalarType master_dtype = at::kFloat;         // of the masters between steps: fp32 or fp16
  bool precision_aware = false;   // fp32 masters of bf16 parameters are kept as the bits that those lack
  double offload_fraction = 0.0;  // part of masters and optimizer state that lies on the host and is updated there
  modeling::OptimizerOptions optimizer;  // no weight decay for biases and vectors (Megatron's rule)

  int64_t expert_tensor() const { return *sizes.expert_tensor; }
  // Do tokens leave their rank on the way to their experts?
  bool dispatches() const { return model.moe && expert_tensor() * sizes.expert > 1; }
  // Do data-parallel ranks meet within a micro-batch, so that all must have equally many?
  bool meets() const { return dispatches() || moe.router.global_aux_loss != 0; }
};

// Throws sdk::Error or modeling::Error: sizes that do not fit the model or `world`, what is not available, wrong
// values.
Settings read_settings(const sdk::Config& config, int64_t world);

// megatron_cfg.optimizer under Megatron's names; where it is silent, policy.optimizer under torch's.
void read_optimizer(const sdk::Config& config, Settings& settings);
// The part of it under megatron_cfg.distributed_data_parallel_config.
void read_data_parallel(const sdk::Config& config, Settings& settings);

}  // namespace hexad::megatron
