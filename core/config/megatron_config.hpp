// The typed view of policy.megatron_cfg. Field names are the keys; docs/config.md says what each means.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace hexad::config {

struct MegatronPipelineConfig {
  std::optional<int64_t> num_layers_in_first_pipeline_stage;
  std::optional<int64_t> num_layers_in_last_pipeline_stage;
  bool account_for_embedding_in_pipeline_split = false;
  bool account_for_loss_in_pipeline_split = false;
  // A string for each stage, in order of the pipeline: E embedding, t decoder layer, L loss. Empty: evenly.
  std::vector<std::string> pipeline_model_parallel_layout;
  std::optional<int64_t> virtual_pipeline_model_parallel_size;
  std::optional<int64_t> num_layers_per_virtual_pipeline_stage;
  std::optional<int64_t> microbatch_group_size_per_vp_stage;  // absent: the pipeline size
  bool overlap_p2p_comm = false;
  bool batch_p2p_comm = true;
  std::string pipeline_dtype = "bfloat16";
};

struct MegatronMoeConfig {
  bool freeze_moe_router = true;
  std::optional<std::string> moe_router_dtype = "fp64";
  std::vector<std::string> moe_router_load_balancing_type = {"none"};
  std::vector<double> moe_aux_loss_coeff = {0};  // one for each type
  std::optional<double> moe_z_loss_coeff;
  std::optional<std::string> moe_router_score_function;  // absent, here and below: the model's
  std::optional<bool> moe_router_pre_softmax;
  double moe_router_bias_update_rate = 0;
  bool moe_router_enable_expert_bias = false;
  std::optional<int64_t> moe_router_num_groups;
  std::optional<int64_t> moe_router_group_topk;
  std::string moe_token_dispatcher_type = "alltoall";
  bool moe_shared_expert_overlap = false;
  std::optional<double> moe_expert_capacity_factor;  // absent: dropless
  bool moe_pad_expert_input_to_capacity = false;
  std::string moe_token_drop_policy = "probs";
  bool moe_grouped_gemm = true;
};

struct MegatronRecomputeConfig {
  bool activation_checkpointing = false;
  std::string recompute_granularity = "full";
  std::string recompute_method = "uniform";
  int64_t recompute_num_layers = 1;
  std::vector<std::string> recompute_modules = {"core_attn"};
};

struct MegatronOptimizerConfig {
  std::string optimizer = "adam";
  double lr = 5e-6;
  double min_lr = 0;  // as `lr` where neither it nor the schedule is given
  double weight_decay = 0.01;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_eps = 1e-8;
  double sgd_momentum = 0.9;
  bool use_distributed_optimizer = true;
  bool use_precision_aware_optimizer = true;
  std::string main_params_dtype = "float32";
  std::string main_grads_dtype = "float32";
  std::string exp_avg_dtype = "float32";
  std::string exp_avg_sq_dtype = "float32";
  std::optional<double> clip_grad = 1.0;  // absent: no clipping
  bool optimizer_cpu_offload = false;
  double optimizer_offload_fraction = 0;
};

// Steps are optimizer-schedule steps, one a rollout, as in NeMo-RL.
struct MegatronSchedulerConfig {
  double start_weight_decay = 0.01;
  double end_weight_decay = 0.01;
  std::string weight_decay_incr_style = "constant";
  std::string lr_decay_style = "constant";
  int64_t lr_decay_iters = 1000;  // null in the file: grpo.max_num_steps
  int64_t lr_warmup_iters = 13;
  double lr_warmup_init = 5e-7;
  std::string lr_wsd_decay_style = "exponential";
  std::optional<int64_t> lr_wsd_decay_iters;
};

struct MegatronDdpConfig {
  bool grad_reduce_in_fp32 = false;
  bool overlap_grad_reduce = true;
  bool overlap_param_gather = true;
  std::optional<int64_t> bucket_size;  // absent: max(40e6, 1e6 x data-parallel ranks) elements
  int64_t num_distributed_optimizer_instances = 1;
  // What data-parallel ranks share: no_shard, optim, optim_grads or optim_grads_params. The key has its effect with
  // use_megatron_fsdp; without it use_distributed_optimizer decides between the first two.
  std::string data_parallel_sharding_strategy = "optim";
};

struct MegatronConfig {
  int64_t tensor_model_parallel_size = 1;
  int64_t pipeline_model_parallel_size = 1;
  int64_t context_parallel_size = 1;
  int64_t expert_model_parallel_size = 1;
  int64_t expert_tensor_parallel_size = 1;
  std::string rank_order = "tp-cp-ep-dp-pp";
  bool sequence_parallel = false;
  bool tp_comm_overlap = false;
  std::vector<std::string> cp_comm_type = {"p2p"};           // one for all layers, or one for each
  std::vector<int64_t> hierarchical_context_parallel_sizes;  // inner, outer; empty without a2a+p2p
  MegatronPipelineConfig pipeline;
  MegatronMoeConfig moe;
  MegatronRecomputeConfig recompute;
  MegatronOptimizerConfig optimizer;
  std::optional<MegatronSchedulerConfig> scheduler;  // absent: policy.scheduler is the schedule
  MegatronDdpConfig ddp;
};

// Under the keys of policy.megatron_cfg, none left out: what the plugin megatron receives in its place. A layout is a
// list of stages (null: none), cp_comm_type and the balancing losses always lists, and data_parallel_sharding_strategy the one in effect.
nlohmann::ordered_json to_json(const MegatronConfig& config);

}  // namespace hexad::config
