// The keys of strategy_config, by strategy.
#include "compat/roll/schema/schema.hpp"

namespace hexad::config::roll {
namespace {

using Names = std::initializer_list<const char*>;

void add_unread_settings(Schema& s, Names names, const char* reason) {
  for (const char* name : names) s.add(name, kAny, "", "").open().accepted(reason);
}

void add_off(Schema& s, Names names, const char* feature) {
  for (const char* name : names) s.add(name, kAny, "", "").open().unavailable(feature, {"false", "null", "none", "0"});
}

void add_megatron_layout(Schema& s) {
  for (const char* name : {"tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size",
                           "expert_model_parallel_size"}) {
    s.add(name, kInt, "1", "as policy.megatron_cfg's").at_least(1);
  }
  s.add("expert_tensor_parallel_size", kInt | kNull, "null", "null: tensor_model_parallel_size").at_least(1);
  s.add("virtual_pipeline_model_parallel_size", kInt | kNull, "null", "as policy.megatron_cfg's").at_least(1);
  s.add("sequence_parallel", kBool, "false", "as policy.megatron_cfg's");
  for (const char* name : {"account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"}) {
    s.add(name, kBool, "false", "as policy.megatron_cfg's");
  }
  for (const char* name : {"num_layers_in_first_pipeline_stage", "num_layers_in_last_pipeline_stage"}) {
    s.add(name, kInt | kNull, "null", "as policy.megatron_cfg's").at_least(0);
  }
  s.add("pipeline_model_parallel_layout", kText | kList | kNull, "null", "as policy.megatron_cfg's");
  s.add("overlap_p2p_comm", kBool | kNull, "null", "as policy.megatron_cfg's, where the schedule is interleaved");
  s.add("cp_comm_type", kText | kList | kNull, "null", "as policy.megatron_cfg's");
  s.add("variable_seq_lengths", kBool, "false", "").accepted("lengths may always differ between micro-batches");
}

void add_megatron_recompute(Schema& s) {
  s.add("recompute_granularity", kText | kNull, "null", "what is recomputed; null: nothing")
      .one_of({"full", "selective"});
  s.add("recompute_method", kText | kNull, "null", "uniform or block").one_of({"uniform", "block", "recompute"});
  s.add("recompute_num_layers", kInt | kNull, "null", "as policy.megatron_cfg's").at_least(1);
  s.add("recompute_modules", kText | kList | kNull, "null", "`a,b` or a list").elements(kText);
  s.add("moe_layer_recompute", kBool, "false", "recompute the experts: recompute_modules moe");
}

void add_megatron_moe(Schema& s) {
  s.add("moe_token_dispatcher_type", kText, "alltoall", "as policy.megatron_cfg's")
      .one_of({"alltoall", "allgather", "flex"});
  s.add("moe_aux_loss_coeff", kFloat | kNull, "null", "weight of the load-balancing loss").at_least(0);
  s.add("moe_router_load_balancing_type", kText | kNull, "null", "as policy.megatron_cfg's");
  s.add("moe_router_dtype", kText | kNull, "null", "as policy.megatron_cfg's; null: fp32").one_of({"fp32", "fp64"});
  for (const char* name : {"moe_grouped_gemm", "moe_shared_expert_overlap", "moe_pad_expert_input_to_capacity"}) {
    s.add(name, kBool, name == std::string("moe_grouped_gemm") ? "true" : "false", "as policy.megatron_cfg's");
  }
  s.add("moe_expert_capacity_factor", kFloat | kNull, "null", "as policy.megatron_cfg's").above(0);
  s.add("moe_token_drop_policy", kText | kNull, "null", "as policy.megatron_cfg's").one_of({"probs", "position"});
  s.add("moe_enable_routing_replay", kBool, "false", "training replays the generator's expert choices");
}

void add_megatron_optimizer(Schema& s) {
  s.add("optimizer", kText, "adam", "which").one_of({"adam", "sgd"}).not_built({"muon", "dist_muon"});
  s.add("use_distributed_optimizer", kBool, "true", "share optimizer state between data-parallel ranks");
  s.add("accumulate_allreduce_grads_in_fp32", kBool | kNull, "null", "reduce gradients in float32; null: with bf16");
  s.add("overlap_grad_reduce", kBool, "false", "overlap it with the backward pass");
  s.add("overlap_param_gather", kBool, "false", "")
      .unavailable("gathering parameters during the forward pass, which ROLL refuses too");
  s.add("ddp_bucket_size", kInt | kNull, "null", "elements of a bucket").at_least(1);
  s.add("ckpt_format", kText | kNull, "null", "").one_of({"legacy", "torch_dist"});
  for (const char* name : {"optimizer_cpu_offload", "optimizer_offload_fraction"}) {
    s.add(name, kAny, "", "")
        .accepted(
            "ROLL's RL strategy does not forward it; hexad: {policy: {megatron_cfg: {optimizer: "
            "{optimizer_cpu_offload: "
            "true, optimizer_offload_fraction: 1.0}}}} does it");
  }
  add_unread_settings(s, {"ddp_average_in_collective", "calculate_per_token_loss", "delay_grad_reduce"},
                      "gradients are sums over tokens; loss_agg_mode says what the loss is a mean over");
  add_unread_settings(s, {"check_for_nan_in_loss_and_grad"}, "a step that is not finite is always found and skipped");
  add_unread_settings(s, {"max_grad_norm"}, "max_grad_norm at the top is the one that is read");
}

}  // namespace

void add_megatron(Schema& s) {
  add_megatron_layout(s);
  add_megatron_recompute(s);
  add_megatron_moe(s);
  add_megatron_optimizer(s);
  s.add("additional_configs", kMap | kNull, "{}", "more of these keys").open();
  add_unread_settings(s,
                      {"bias_activation_fusion", "apply_rope_fusion", "cross_entropy_loss_fusion", "moe_permute_fusion",
                       "transformer_impl", "attention_backend"},
                      "a fused kernel runs wherever there is one");
  add_unread_settings(s, {"bf16", "fp16"}, "the type is model_args.dtype");
  add_unread_settings(s,
                      {"save_hf_model", "save_merged_model", "ckpt_d2h_non_blocking", "distrib_optim_fully_reshardable",
                       "distrib_optim_fully_reshardable_mem_efficient"},
                      "checkpoints hold Hugging Face names and are read under any layout");
  add_unread_settings(s, {"compile_warmup", "sequence_packing", "use_batched_model_update", "lr_scheduler_kwargs"},
                      "not read; use_sequence_packing and training_args are");
  add_off(s, {"fp8", "fp8_recipe", "fp8_param"}, "FP8");
  add_off(s, {"cuda_graph_impl", "cuda_graph_scope"}, "CUDA graphs in training");
  add_off(s, {"mtp_num_layers", "mtp_loss_scaling_factor"}, "training of multi-token prediction");
  add_off(s, {"apply_tiled_mlp", "tiled_num_shards"}, "a tiled feed-forward part");
}

void add_deepspeed(Schema& s) {
  s.section("zero_optimization", "what ranks share", kMap | kNull);
  s.add("zero_optimization.stage", kInt, "0", "ZeRO stage").at_least(0).at_most(3);
  for (const char* part : {"offload_optimizer", "offload_param"}) {
    const std::string at = std::string("zero_optimization.") + part;
    s.section(at, "what is kept in host memory", kMap | kNull);
    s.add(at + ".device", kText, "none", "where").one_of({"none", "cpu"}).not_built({"nvme"});
    for (const char* name : {"pin_memory", "ratio", "buffer_count", "nvme_path"})
      s.add(at + "." + name, kAny, "", "").accepted("");
  }
  for (const char* name :
       {"overlap_comm", "contiguous_gradients", "sub_group_size", "reduce_bucket_size", "allgather_partitions",
        "allgather_bucket_size", "reduce_scatter", "round_robin_gradients", "stage3_prefetch_bucket_size",
        "stage3_param_persistence_threshold", "stage3_max_live_parameters", "stage3_max_reuse_distance",
        "stage3_gather_16bit_weights_on_model_save", "zero_hpz_partition_size", "ignore_unused_parameters"}) {
    s.add(std::string("zero_optimization.") + name, kAny, "", "").accepted("");
  }
  for (const char* type : {"bf16", "fp16"}) {
    s.section(type, "training in it", kMap | kNull);
    s.add(std::string(type) + ".enabled", kBool | kText, "false", "train in it");
    for (const char* name :
         {"loss_scale", "initial_scale_power", "loss_scale_window", "hysteresis", "min_loss_scale"}) {
      s.add(std::string(type) + "." + name, kAny, "", "").accepted("");
    }
  }
  for (const char* name :
       {"train_micro_batch_size_per_gpu", "train_batch_size", "gradient_accumulation_steps", "gradient_clipping",
        "zero_allow_untested_optimizer", "steps_per_print", "wall_clock_breakdown", "zero_force_ds_cpu_optimizer"}) {
    s.add(name, kAny, "", "").accepted("");
  }
  s.add("optimizer", kMap | kNull, "null", "")
      .open()
      .unavailable("an optimizer of the preset (training_args is read)", {"null"});
  s.add("scheduler", kMap | kNull, "null", "")
      .open()
      .unavailable("a schedule of the preset (training_args is read)", {"null"});
}

void add_fsdp2(Schema& s) {
  s.add("fsdp_size", kInt, "1", "ranks that share the weights; 1: all").at_least(0);
  s.add("ep_size", kInt, "1", "ranks that share the experts").at_least(1);
  s.add("param_dtype", kText | kNull, "null", "type in computation")
      .one_of({"bf16", "fp16", "fp32", "bfloat16", "float16", "float32"});
  s.add("reshard_after_forward", kBool | kNull, "null", "free gathered weights between forward and backward");
  s.add("offload_policy", kBool | kNull, "false", "weights and optimizer in host memory");
  add_unread_settings(s, {"reduce_dtype"}, "gradients are reduced in float32");
  add_unread_settings(s, {"wrap_policy", "efsdp_size", "moe_use_grouped_mm", "apply_expert_patch", "model_type"},
                      "the model is this engine's own and is shared block by block");
  add_unread_settings(s, {"async_save_ckpt", "save_only_model", "use_batched_model_update"},
                      "checkpoints and weight updates have no settings of a strategy");
  add_unread_settings(s, {"reduce_scatter_during_grad_accumulation"},
                      "gradients are reduced once after the last micro-batch");
  add_off(s, {"apply_tiled_mlp", "tiled_num_shards"}, "a tiled feed-forward part");
}

}  // namespace hexad::config::roll
