#include "core/config/megatron_config.hpp"

namespace hexad::config {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json optimizer_json(const MegatronOptimizerConfig& c) {
  return {{"optimizer", c.optimizer},
          {"lr", c.lr},
          {"min_lr", c.min_lr},
          {"weight_decay", c.weight_decay},
          {"adam_beta1", c.adam_beta1},
          {"adam_beta2", c.adam_beta2},
          {"adam_eps", c.adam_eps},
          {"sgd_momentum", c.sgd_momentum},
          {"use_distributed_optimizer", c.use_distributed_optimizer},
          {"use_precision_aware_optimizer", c.use_precision_aware_optimizer},
          {"main_params_dtype", c.main_params_dtype},
          {"main_grads_dtype", c.main_grads_dtype},
          {"exp_avg_dtype", c.exp_avg_dtype},
          {"exp_avg_sq_dtype", c.exp_avg_sq_dtype},
          {"clip_grad", or_null(c.clip_grad)},
          {"optimizer_cpu_offload", c.optimizer_cpu_offload},
          {"optimizer_offload_fraction", c.optimizer_offload_fraction}};
}

Json scheduler_json(const MegatronSchedulerConfig& c) {
  return {{"start_weight_decay", c.start_weight_decay},
          {"end_weight_decay", c.end_weight_decay},
          {"weight_decay_incr_style", c.weight_decay_incr_style},
          {"lr_decay_style", c.lr_decay_style},
          {"lr_decay_iters", c.lr_decay_iters},
          {"lr_warmup_iters", c.lr_warmup_iters},
          {"lr_warmup_init", c.lr_warmup_init},
          {"lr_wsd_decay_style", c.lr_wsd_decay_style},
          {"lr_wsd_decay_iters", or_null(c.lr_wsd_decay_iters)}};
}

Json ddp_json(const MegatronDdpConfig& c) {
  return {{"grad_reduce_in_fp32", c.grad_reduce_in_fp32},
          {"overlap_grad_reduce", c.overlap_grad_reduce},
          {"overlap_param_gather", c.overlap_param_gather},
          {"bucket_size", or_null(c.bucket_size)},
          {"num_distributed_optimizer_instances", c.num_distributed_optimizer_instances},
          {"data_parallel_sharding_strategy", c.data_parallel_sharding_strategy}};
}

void add_pipeline_json(const MegatronPipelineConfig& c, Json& out) {
  out["num_layers_in_first_pipeline_stage"] = or_null(c.num_layers_in_first_pipeline_stage);
  out["num_layers_in_last_pipeline_stage"] = or_null(c.num_layers_in_last_pipeline_stage);
  out["account_for_embedding_in_pipeline_split"] = c.account_for_embedding_in_pipeline_split;
  out["account_for_loss_in_pipeline_split"] = c.account_for_loss_in_pipeline_split;
  out["pipeline_model_parallel_layout"] =
      c.pipeline_model_parallel_layout.empty() ? Json() : Json(c.pipeline_model_parallel_layout);
  out["virtual_pipeline_model_parallel_size"] = or_null(c.virtual_pipeline_model_parallel_size);
  out["num_layers_per_virtual_pipeline_stage"] = or_null(c.num_layers_per_virtual_pipeline_stage);
  out["microbatch_group_size_per_vp_stage"] = or_null(c.microbatch_group_size_per_vp_stage);
  out["overlap_p2p_comm"] = c.overlap_p2p_comm;
  out["batch_p2p_comm"] = c.batch_p2p_comm;
  out["pipeline_dtype"] = c.pipeline_dtype;
}

void add_moe_json(const MegatronMoeConfig& c, Json& out) {
  out["freeze_moe_router"] = c.freeze_moe_router;
  out["moe_router_dtype"] = or_null(c.moe_router_dtype);
  out["moe_router_load_balancing_type"] = c.moe_router_load_balancing_type;
  out["moe_aux_loss_coeff"] = c.moe_aux_loss_coeff;
  out["moe_z_loss_coeff"] = or_null(c.moe_z_loss_coeff);
  out["moe_router_score_function"] = or_null(c.moe_router_score_function);
  out["moe_router_pre_softmax"] = or_null(c.moe_router_pre_softmax);
  out["moe_router_bias_update_rate"] = c.moe_router_bias_update_rate;
  out["moe_router_enable_expert_bias"] = c.moe_router_enable_expert_bias;
  out["moe_router_num_groups"] = or_null(c.moe_router_num_groups);
  out["moe_router_group_topk"] = or_null(c.moe_router_group_topk);
  out["moe_token_dispatcher_type"] = c.moe_token_dispatcher_type;
  out["moe_shared_expert_overlap"] = c.moe_shared_expert_overlap;
  out["moe_expert_capacity_factor"] = or_null(c.moe_expert_capacity_factor);
  out["moe_pad_expert_input_to_capacity"] = c.moe_pad_expert_input_to_capacity;
  out["moe_token_drop_policy"] = c.moe_token_drop_policy;
  out["moe_grouped_gemm"] = c.moe_grouped_gemm;
}

void add_recompute_json(const MegatronRecomputeConfig& c, Json& out) {
  out["activation_checkpointing"] = c.activation_checkpointing;
  out["recompute_granularity"] = c.recompute_granularity;
  out["recompute_method"] = c.recompute_method;
  out["recompute_num_layers"] = c.recompute_num_layers;
  out["recompute_modules"] = c.recompute_modules;
}

}  // namespace

Json to_json(const MegatronConfig& c) {
  Json out = {{"tensor_model_parallel_size", c.tensor_model_parallel_size},
              {"pipeline_model_parallel_size", c.pipeline_model_parallel_size},
              {"context_parallel_size", c.context_parallel_size},
              {"expert_model_parallel_size", c.expert_model_parallel_size},
              {"expert_tensor_parallel_size", c.expert_tensor_parallel_size},
              {"rank_order", c.rank_order},
              {"sequence_parallel", c.sequence_parallel},
              {"tp_comm_overlap", c.tp_comm_overlap},
              {"cp_comm_type", c.cp_comm_type},
              {"hierarchical_context_parallel_sizes", c.hierarchical_context_parallel_sizes}};
  add_pipeline_json(c.pipeline, out);
  add_moe_json(c.moe, out);
  add_recompute_json(c.recompute, out);
  out["optimizer"] = optimizer_json(c.optimizer);
  out["scheduler"] = c.scheduler ? scheduler_json(*c.scheduler) : Json();
  out["distributed_data_parallel_config"] = ddp_json(c.ddp);
  return out;
}

}  // namespace hexad::config
