#include "core/config/schema/blocks.hpp"

namespace hexad::config {
namespace {

const std::string kAt = "policy.megatron_cfg";

Schema::Entry key(Schema& s, const char* name, Kinds kinds, const char* value, const char* meaning) {
  return s.add(kAt + "." + name, kinds, value, meaning);
}

void add_layout(Schema& s) {
  key(s, "tensor_model_parallel_size", kInt, "1", "ranks that share each layer").at_least(1);
  key(s, "pipeline_model_parallel_size", kInt, "1", "ranks that share the layers").at_least(1);
  key(s, "context_parallel_size", kInt, "1", "ranks that share each sequence (needs sequence_packing)").at_least(1);
  key(s, "expert_model_parallel_size", kInt, "1", "ranks that share the experts").at_least(1);
  key(s, "expert_tensor_parallel_size", kInt, "1", "ranks that share each expert").at_least(1);
  key(s, "sequence_parallel", kBool, "false", "share norms along the sequence");
  key(s, "num_layers_in_first_pipeline_stage", kInt | kNull, "null", "an uneven pipeline").at_least(0);
  key(s, "num_layers_in_last_pipeline_stage", kInt | kNull, "null", "an uneven pipeline").at_least(0);
  key(s, "pipeline_dtype", kText, "${policy.precision}", "type of what pipeline stages send");
  key(s, "use_gloo_process_groups", kBool, "false", "make Gloo groups too");
}

void add_model(Schema& s) {
  key(s, "model_overrides", kMap | kNull, "{}", "overrides of the model provider").open();
  key(s, "freeze_config", kMap | kNull, "null", "parts of the model that are not trained").open();
  key(s, "layernorm_epsilon", kFloat | kNull, "null", "epsilon of the norms");
  key(s, "mtp_num_layers", kInt | kNull, "0", "layers of multi-token prediction").at_least(0);
  key(s, "mtp_loss_scaling_factor", kFloat, "0.0", "weight of their loss");
  key(s, "mtp_use_repeated_layer", kBool, "false", "they share one layer");
  key(s, "mtp_detach_heads", kBool, "false", "they send no gradient into the model");
  key(s, "converter_type", kText, "", "Hugging Face architecture (NeMo-RL 0.3)");
  key(s, "radio_force_cpe_eval_mode", kBool, "false", "of a vision encoder");
}

void add_experts(Schema& s) {
  key(s, "freeze_moe_router", kBool, "true", "do not train the router");
  key(s, "moe_router_dtype", kText | kNull, "fp64", "type of the router's computation");
  key(s, "moe_router_load_balancing_type", kText, "none", "load-balancing loss: none, aux_loss, seq_aux_loss");
  key(s, "moe_aux_loss_coeff", kFloat, "0.0", "weight of that loss");
  key(s, "moe_router_bias_update_rate", kFloat, "0.0", "step of the expert bias");
  key(s, "moe_router_enable_expert_bias", kBool, "false", "route with an expert bias");
  key(s, "moe_router_num_groups", kInt | kNull, "null", "groups of experts");
  key(s, "moe_router_group_topk", kInt | kNull, "null", "groups that a token may choose");
  key(s, "moe_token_dispatcher_type", kText, "alltoall", "alltoall, allgather, flex");
  key(s, "moe_flex_dispatcher_backend", kText | kNull, "null", "which flex dispatcher");
  key(s, "moe_hybridep_num_sms", kInt | kNull, "null", "of the HybridEP dispatcher");
  key(s, "hybridep_num_ranks_per_nvlink_domain", kInt | kNull, "null", "of the HybridEP dispatcher");
  key(s, "hybridep_use_mnnvl", kBool | kNull, "null", "of the HybridEP dispatcher");
  key(s, "moe_enable_deepep", kBool, "false", "the DeepEP dispatcher");
  key(s, "moe_grouped_gemm", kBool, "true", "one kernel for all experts");
  key(s, "moe_permute_fusion", kBool, "true", "fused permutation");
  key(s, "moe_shared_expert_overlap", kBool, "false", "overlap the shared expert with communication");
  key(s, "moe_per_layer_logging", kBool, "false", "log each layer's balance");
  key(s, "track_moe_metrics", kBool, "false", "log the balance");
  key(s, "moe_pad_experts_for_cuda_graph_inference", kBool | kNull, "null", "of Megatron's inference engine");
}

void add_computation(Schema& s) {
  key(s, "activation_checkpointing", kBool, "false", "recompute activations");
  key(s, "recompute_granularity", kText, "full", "what is recomputed").one_of({"full", "selective"});
  key(s, "recompute_modules", kList | kNull, "null", "selective: which modules").elements(kText);
  key(s, "fine_grained_activation_offloading", kBool, "false", "move activations to host memory");
  key(s, "offload_modules", kList | kNull, "null", "those of which modules").elements(kText);
  key(s, "apply_rope_fusion", kBool, "true", "fused rotary embedding");
  key(s, "bias_activation_fusion", kBool, "true", "fused bias and activation");
  key(s, "gradient_accumulation_fusion", kBool, "false", "weight gradients accumulate in the matrix product");
  key(s, "use_fused_weighted_squared_relu", kBool, "false", "fused activation of Nemotron");
  key(s, "use_fused_linear_logprobs", kBool, "false", "log-probs without holding the logits");
  key(s, "fused_linear_logprobs_chunk_size", kInt, "256", "tokens at once in it").at_least(1);
  key(s, "defer_fp32_logits", kBool, "false", "logits stay in low precision until the loss");
  key(s, "attention_backend", kText | kNull, "null", "implementation of attention");
  key(s, "transformer_impl", kText | kNull, "null", "implementation of layers");
  key(s, "cuda_graph_impl", kText, "none", "CUDA graphs in training");
  key(s, "cuda_graph_modules", kList, "[]", "what they cover").elements(kText);
  key(s, "cuda_graph_warmup_steps", kInt, "3", "steps before they are captured").at_least(0);
  key(s, "inference_cuda_graph_scope", kText | kNull, "null", "of Megatron's inference engine");
  key(s, "inference_moe_token_dispatcher_type", kText | kNull, "null", "of Megatron's inference engine");
  key(s, "inference_grouped_gemm_backend", kText | kNull, "null", "of Megatron's inference engine");
  key(s, "empty_unused_memory_level", kInt, "1", "how often allocator caches are emptied").at_least(0).at_most(2);
  key(s, "clear_memory_caches_before_refit", kBool, "false", "empty them before a weight update");
  key(s, "env_vars", kMap | kNull, "null", "environment of the workers").open();
  for (const char* unread : {"do_not_average_loss", "cp_normalize", "scale_loss_by_dp_cp_size",
                             "first_last_layers_bf16", "num_layers_at_start_in_bf16", "num_layers_at_end_in_bf16"}) {
    key(s, unread, kAny, "", "NeMo-RL reads it nowhere");
  }
}

void add_megatron_lora(Schema& s) {
  s.section(kAt + ".peft", "low-rank adapters").unavailable("LoRA", {});
  key(s, "peft.enabled", kBool, "false", "train adapters only").unavailable("LoRA");
  key(s, "peft.target_modules", kList, "[]", "modules").elements(kText);
  key(s, "peft.exclude_modules", kList, "[]", "modules left out").elements(kText);
  key(s, "peft.dim", kInt, "8", "rank").at_least(1);
  key(s, "peft.alpha", kFloat, "32", "scale is alpha / dim");
  key(s, "peft.dropout", kFloat, "0.0", "dropout").at_least(0).at_most(1);
  key(s, "peft.dropout_position", kText, "post", "before or after the adapter").one_of({"pre", "post"});
  key(s, "peft.lora_A_init_method", kText, "xavier", "initialisation of A");
  key(s, "peft.lora_B_init_method", kText, "zero", "initialisation of B");
  key(s, "peft.a2a_experimental", kBool, "false", "all-to-all");
  key(s, "peft.lora_dtype", kText | kNull, "None", "type of the adapters");
}

void add_optimizer_keys(Schema& s) {
  s.section(kAt + ".optimizer", "the optimizer", kMap | kNull);
  key(s, "optimizer.optimizer", kText, "adam", "which").one_of({"adam", "sgd"}).not_built({"muon", "dist_muon"});
  key(s, "optimizer.lr", kFloat, "5e-06", "learning rate").at_least(0);
  key(s, "optimizer.min_lr", kFloat, "5e-07", "lowest learning rate").at_least(0);
  key(s, "optimizer.weight_decay", kFloat, "0.01", "weight decay").at_least(0);
  key(s, "optimizer.bf16", kBool, "true", "bfloat16 training; agrees with policy.precision");
  key(s, "optimizer.fp16", kBool, "false", "float16 training");
  key(s, "optimizer.params_dtype", kText, "float32", "type of the parameters");
  key(s, "optimizer.adam_beta1", kFloat, "0.9", "decay rate of the first moment");
  key(s, "optimizer.adam_beta2", kFloat, "0.999", "decay rate of the second moment");
  key(s, "optimizer.adam_eps", kFloat, "1e-08", "added to the denominator").at_least(0);
  key(s, "optimizer.sgd_momentum", kFloat, "0.9", "SGD: momentum");
  key(s, "optimizer.use_distributed_optimizer", kBool, "true", "share optimizer state between data-parallel ranks");
  key(s, "optimizer.use_precision_aware_optimizer", kBool, "true", "moments in chosen types");
  key(s, "optimizer.clip_grad", kFloat | kNull, "${policy.max_grad_norm}", "gradients are clipped to this global norm");
  key(s, "optimizer.optimizer_cpu_offload", kBool, "false", "optimizer in host memory");
  key(s, "optimizer.optimizer_offload_fraction", kFloat, "0.0", "part of it").at_least(0).at_most(1);
  key(s, "optimizer.overlap_cpu_optimizer_d2h_h2d", kBool, "false", "overlap its copies");
  s.section(kAt + ".scheduler", "learning-rate schedule", kMap | kNull);
  key(s, "scheduler.start_weight_decay", kFloat, "${policy.megatron_cfg.optimizer.weight_decay}", "first weight decay");
  key(s, "scheduler.end_weight_decay", kFloat, "${policy.megatron_cfg.optimizer.weight_decay}", "last weight decay");
  key(s, "scheduler.weight_decay_incr_style", kText, "constant", "how it goes from one to the other");
  key(s, "scheduler.lr_decay_style", kText, "constant", "constant, linear, cosine, inverse-square-root, WSD");
  key(s, "scheduler.lr_decay_iters", kInt | kNull, "1000", "steps of the decay").at_least(0);
  key(s, "scheduler.lr_warmup_iters", kInt, "13", "steps of the warm-up").at_least(0);
  key(s, "scheduler.lr_warmup_init", kFloat, "5e-07", "learning rate at its start").at_least(0);
}

void add_rest(Schema& s) {
  s.section(kAt + ".checkpoint", "checkpoints of Megatron-Core");
  key(s, "checkpoint.async_save", kBool, "true", "write while training goes on");
  key(s, "checkpoint.ckpt_assume_constant_structure", kBool, "true", "plan once");
  key(s, "checkpoint.ckpt_fully_parallel_save_process_group", kText, "dp", "ranks that share the writing");
  key(s, "checkpoint.ckpt_fully_parallel_load_process_group", kText, "dp", "ranks that share the reading");
  key(s, "checkpoint.ckpt_fully_parallel_load_exchange_algo", kText, "broadcast", "how they exchange what they read");
  key(s, "force_reconvert_from_hf", kBool, "false", "ignore the cache of converted models");
  const char* const ddp = "distributed_data_parallel_config";
  s.section(kAt + "." + ddp, "gradient reduction", kMap | kNull);
  const auto ddp_key = [&](const char* name, Kinds kinds, const char* value, const char* meaning) {
    s.add(kAt + "." + ddp + "." + name, kinds, value, meaning);
  };
  ddp_key("grad_reduce_in_fp32", kBool, "false", "reduce gradients in float32");
  ddp_key("overlap_grad_reduce", kBool, "true", "overlap it with the backward pass");
  ddp_key("overlap_param_gather", kBool, "true", "overlap gathering with the forward pass");
  ddp_key("average_in_collective", kBool, "false", "NeMo-RL sets it to false");
  ddp_key("use_custom_fsdp", kBool, "false", "NeMo-RL reads it nowhere");
  ddp_key("data_parallel_sharding_strategy", kText, "optim_grads_params", "what data-parallel ranks share");
  s.section(kAt + ".fp8_cfg", "FP8 training", kMap | kNull).unavailable("FP8", {});
  key(s, "fp8_cfg.enabled", kBool, "false", "train in FP8").unavailable("FP8");
  key(s, "fp8_cfg.fp8", kText, "e4m3", "format").one_of({"e4m3", "hybrid"});
  key(s, "fp8_cfg.fp8_recipe", kText, "blockwise", "how values are scaled");
  key(s, "fp8_cfg.fp8_param", kBool, "false", "parameters in FP8 too");
  key(s, "fp8_cfg.force_clear_fp8_caches", kBool, "false", "drop FP8 copies before a weight update");
}

}  // namespace

void add_megatron(Schema& s) {
  s.section(kAt, "the megatron backend", kMap | kNull)
      .accepted("read by the plugin megatron (policy.backend: megatron)");
  key(s, "enabled", kBool, "false", "train with the plugin megatron (not with dtensor_cfg.enabled)");
  add_layout(s);
  add_model(s);
  add_experts(s);
  add_computation(s);
  add_megatron_lora(s);
  add_optimizer_keys(s);
  add_rest(s);
}

}  // namespace hexad::config
