#include "core/config/pipeline_layout.hpp"
#include "core/config/run_config_read.hpp"

namespace hexad::config {
namespace {

const std::string kMegatronSection = "policy.megatron_cfg";

MegatronPipelineConfig read_pipeline(const Reader& r, const std::string& precision) {
  MegatronPipelineConfig c;
  r.read("num_layers_in_first_pipeline_stage", c.num_layers_in_first_pipeline_stage);
  r.read("num_layers_in_last_pipeline_stage", c.num_layers_in_last_pipeline_stage);
  r.read("account_for_embedding_in_pipeline_split", c.account_for_embedding_in_pipeline_split);
  r.read("account_for_loss_in_pipeline_split", c.account_for_loss_in_pipeline_split);
  if (const Node* layout = r.find("pipeline_model_parallel_layout")) {
    c.pipeline_model_parallel_layout = pipeline_layout(*layout).stages;
  }
  r.read("virtual_pipeline_model_parallel_size", c.virtual_pipeline_model_parallel_size);
  r.read("num_layers_per_virtual_pipeline_stage", c.num_layers_per_virtual_pipeline_stage);
  r.read("microbatch_group_size_per_vp_stage", c.microbatch_group_size_per_vp_stage);
  int64_t stages = 1;
  r.read("pipeline_model_parallel_size", stages);
  const bool interleaved = c.virtual_pipeline_model_parallel_size.value_or(1) > 1 ||
                           c.num_layers_per_virtual_pipeline_stage ||
                           static_cast<int64_t>(c.pipeline_model_parallel_layout.size()) > stages;
  std::optional<bool> overlap, batch;
  r.read("overlap_p2p_comm", overlap);
  r.read("batch_p2p_comm", batch);
  c.overlap_p2p_comm = overlap.value_or(interleaved && !batch.value_or(false));
  c.batch_p2p_comm = batch.value_or(!c.overlap_p2p_comm);
  c.pipeline_dtype = precision;
  r.read("pipeline_dtype", c.pipeline_dtype);
  return c;
}

MegatronMoeConfig read_moe(const Reader& r) {
  MegatronMoeConfig c;
  r.read("freeze_moe_router", c.freeze_moe_router);
  r.read("moe_router_dtype", c.moe_router_dtype);
  if (const Node* types = r.find("moe_router_load_balancing_type")) {
    c.moe_router_load_balancing_type =
        types->is_list() ? types->as_strings() : std::vector<std::string>{types->as_string()};
  }
  if (const Node* weights = r.find("moe_aux_loss_coeff")) {
    if (weights->is_list()) {
      r.read("moe_aux_loss_coeff", c.moe_aux_loss_coeff);
    } else {
      c.moe_aux_loss_coeff.assign(1, weights->as_double());
    }
  }
  r.read("moe_z_loss_coeff", c.moe_z_loss_coeff);
  r.read("moe_router_score_function", c.moe_router_score_function);
  r.read("moe_router_pre_softmax", c.moe_router_pre_softmax);
  r.read("moe_router_bias_update_rate", c.moe_router_bias_update_rate);
  r.read("moe_router_enable_expert_bias", c.moe_router_enable_expert_bias);
  r.read("moe_router_num_groups", c.moe_router_num_groups);
  r.read("moe_router_group_topk", c.moe_router_group_topk);
  r.read("moe_token_dispatcher_type", c.moe_token_dispatcher_type);
  r.read("moe_shared_expert_overlap", c.moe_shared_expert_overlap);
  r.read("moe_expert_capacity_factor", c.moe_expert_capacity_factor);
  r.read("moe_pad_expert_input_to_capacity", c.moe_pad_expert_input_to_capacity);
  r.read("moe_token_drop_policy", c.moe_token_drop_policy);
  r.read("moe_grouped_gemm", c.moe_grouped_gemm);
  return c;
}

MegatronRecomputeConfig read_recompute(const Reader& r) {
  MegatronRecomputeConfig c;
  r.read("activation_checkpointing", c.activation_checkpointing);
  r.read("recompute_granularity", c.recompute_granularity);
  r.read("recompute_method", c.recompute_method);
  r.read("recompute_num_layers", c.recompute_num_layers);
  if (r.find("recompute_modules")) r.read("recompute_modules", c.recompute_modules);
  return c;
}

// Keys that the section lacks are those of policy.optimizer, so that a configuration written for the dtensor backend
// trains alike.
MegatronOptimizerConfig read_optimizer(const Node& root) {
  MegatronOptimizerConfig c;
  const Reader kwargs(root, "policy.optimizer.kwargs"), r(root, kMegatronSection + ".optimizer");
  kwargs.read("lr", c.lr);
  kwargs.read("weight_decay", c.weight_decay);
  kwargs.read("eps", c.adam_eps);
  std::vector<double> betas;
  kwargs.read("betas", betas);
  if (betas.size() == 2) c.adam_beta1 = betas[0], c.adam_beta2 = betas[1];
  Reader(root, "policy").read("max_grad_norm", c.clip_grad);
  r.read("optimizer", c.optimizer);
  r.read("lr", c.lr);
  c.min_lr = r.find("lr") ? 5e-7 : c.lr;
  r.read("min_lr", c.min_lr);
  r.read("weight_decay", c.weight_decay);
  r.read("adam_beta1", c.adam_beta1);
  r.read("adam_beta2", c.adam_beta2);
  r.read("adam_eps", c.adam_eps);
  r.read("sgd_momentum", c.sgd_momentum);
  r.read("use_distributed_optimizer", c.use_distributed_optimizer);
  r.read("use_precision_aware_optimizer", c.use_precision_aware_optimizer);
  r.read("main_params_dtype", c.main_params_dtype);
  r.read("main_grads_dtype", c.main_grads_dtype);
  r.read("exp_avg_dtype", c.exp_avg_dtype);
  r.read("exp_avg_sq_dtype", c.exp_avg_sq_dtype);
  r.read("clip_grad", c.clip_grad);
  r.read("optimizer_cpu_offload", c.optimizer_cpu_offload);
  r.read("optimizer_offload_fraction", c.optimizer_offload_fraction);
  return c;
}

std::optional<MegatronSchedulerConfig> read_scheduler(const Node& root, double weight_decay) {
  if (!root.has(kMegatronSection + ".scheduler")) return std::nullopt;
  const Reader r(root, kMegatronSection + ".scheduler");
  MegatronSchedulerConfig c;
  c.start_weight_decay = c.end_weight_decay = weight_decay;
  r.read("start_weight_decay", c.start_weight_decay);
  r.read("end_weight_decay", c.end_weight_decay);
  r.read("weight_decay_incr_style", c.weight_decay_incr_style);
  r.read("lr_decay_style", c.lr_decay_style);
  if (root.find(kMegatronSection + ".scheduler.lr_decay_iters") && !r.find("lr_decay_iters")) {
    Reader(root, name_of(algorithm_of(root))).read("max_num_steps", c.lr_decay_iters);
  }
  r.read("lr_decay_iters", c.lr_decay_iters);
  r.read("lr_warmup_iters", c.lr_warmup_iters);
  r.read("lr_warmup_init", c.lr_warmup_init);
  r.read("lr_wsd_decay_style", c.lr_wsd_decay_style);
  r.read("lr_wsd_decay_iters", c.lr_wsd_decay_iters);
  return c;
}

MegatronDdpConfig read_ddp(const Node& root, bool distributed_optimizer) {
  const Reader r(root, kMegatronSection + ".distributed_data_parallel_config");
  MegatronDdpConfig c;
  r.read("grad_reduce_in_fp32", c.grad_reduce_in_fp32);
  r.read("overlap_grad_reduce", c.overlap_grad_reduce);
  c.overlap_param_gather = distributed_optimizer;
  r.read("overlap_param_gather", c.overlap_param_gather);
  c.overlap_param_gather = c.overlap_param_gather && c.overlap_grad_reduce;
  r.read("bucket_size", c.bucket_size);
  r.read("num_distributed_optimizer_instances", c.num_distributed_optimizer_instances);
  bool fsdp = false, custom_fsdp = false;
  r.read("use_megatron_fsdp", fsdp);
  r.read("use_custom_fsdp", custom_fsdp);
  c.data_parallel_sharding_strategy = distributed_optimizer ? "optim" : "no_shard";
  if (!fsdp && !custom_fsdp) return c;
  c.data_parallel_sharding_strategy = "optim_grads_params";
  r.read("data_parallel_sharding_strategy", c.data_parallel_sharding_strategy);
  return c;
}

}  // namespace

MegatronConfig read_megatron(const Node& root) {
  const Reader r(root, kMegatronSection);
  MegatronConfig c;
  r.read("tensor_model_parallel_size", c.tensor_model_parallel_size);
  r.read("pipeline_model_parallel_size", c.pipeline_model_parallel_size);
  r.read("context_parallel_size", c.context_parallel_size);
  r.read("expert_model_parallel_size", c.expert_model_parallel_size);
  r.read("expert_tensor_parallel_size", c.expert_tensor_parallel_size);
  r.read("rank_order", c.rank_order);
  r.read("sequence_parallel", c.sequence_parallel);
  r.read("tp_comm_overlap", c.tp_comm_overlap);
  if (const Node* types = r.find("cp_comm_type")) {
    c.cp_comm_type = types->is_list() ? types->as_strings() : std::vector<std::string>{types->as_string()};
  }
  if (const Node* sizes = r.find("hierarchical_context_parallel_sizes")) {
    c.hierarchical_context_parallel_sizes = sizes->as_ints();
  }
  std::string precision = "bfloat16";
  Reader(root, "policy").read("precision", precision);
  c.pipeline = read_pipeline(r, precision);
  c.moe = read_moe(r);
  c.recompute = read_recompute(r);
  c.optimizer = read_optimizer(root);
  c.scheduler = read_scheduler(root, c.optimizer.weight_decay);
  c.ddp = read_ddp(root, c.optimizer.use_distributed_optimizer);
  return c;
}

}  // namespace hexad::config
