// Rules about experts, the optimizer, recomputation and types: messages, and a valid neighbour of each.
#include "tests/config/megatron_support.hpp"

using namespace config_test;

namespace {

const std::string kTp = "tensor_model_parallel_size=", kPp = "pipeline_model_parallel_size=",
                  kEp = "expert_model_parallel_size=", kSp = "sequence_parallel=true",
                  kDispatcher = "moe_token_dispatcher_type=", kOptimizer = "optimizer.", kScheduler = "scheduler.",
                  kDdp = "distributed_data_parallel_config.", kPacking = "/policy.sequence_packing.enabled=true";

}  // namespace

TEST_CASE("rules 7 to 10 and 29: experts") {
  check_rules(kDense, {{{kEp + "2"},
                        "expert_model_parallel_size: 2 needs a model with experts, got a dense one; nearest: 1",
                        {kEp + "1"}}});
  check_rules(
      kExperts,
      {{{kEp + "8"}, "expert_model_parallel_size 8 does not divide num_experts 12; nearest: 6 or 12", {kEp + "4"}},
       {{kTp + "2"},
        "sequence_parallel: training experts with tensor_model_parallel_size 2 needs sequence_parallel: true",
        {kTp + "2", kSp}},
       {{"expert_tensor_parallel_size=2", "/policy.hf_config_overrides={mlp_bias: true}"},
        "expert_tensor_parallel_size: got 2, but the experts' linear layers have biases (mlp_bias), which cannot be "
        "shared; nearest: 1",
        {"expert_tensor_parallel_size=1", "/policy.hf_config_overrides={mlp_bias: true}"}},
       {{"expert_tensor_parallel_size=8", "/policy.hf_config_overrides={moe_intermediate_size: 20}"},
        "expert_tensor_parallel_size 8 does not divide moe_intermediate_size 20; nearest: 5 or 10",
        {"expert_tensor_parallel_size=4", "/policy.hf_config_overrides={moe_intermediate_size: 20}"}},
       {{kDispatcher + "allgather", kPp + "2", kPacking},
        "moe_token_dispatcher_type: allgather needs all micro-batches to have one length, but policy.sequence_packing "
        "makes them differ between 2 pipeline stages; nearest: alltoall",
        {kDispatcher + "allgather", kPacking}},
       {{kDispatcher + "allgather", "moe_shared_expert_overlap=true"},
        "moe_shared_expert_overlap: needs moe_token_dispatcher_type: alltoall, got allgather; nearest: false",
        {"moe_shared_expert_overlap=true"}},
       {{kDispatcher + "flexible"},
        "moe_token_dispatcher_type: got 'flexible', wanted one of alltoall, allgather",
        {kDispatcher + "flex", "moe_shared_expert_overlap=true"}},
       {{"moe_expert_capacity_factor=1.5", "moe_router_load_balancing_type=global_aux_loss", "moe_aux_loss_coeff=0.1"},
        "goes with moe_router_load_balancing_type none, aux_loss or seq_aux_loss, got global_aux_loss; nearest: "
        "aux_loss",
        {"moe_expert_capacity_factor=1.5", "moe_router_load_balancing_type=aux_loss", "moe_aux_loss_coeff=0.1"}},
       {{"moe_pad_expert_input_to_capacity=true"},
        "moe_pad_expert_input_to_capacity: needs moe_expert_capacity_factor, got none; nearest: 1.0, or false",
        {"moe_pad_expert_input_to_capacity=true", "moe_expert_capacity_factor=1.0"}}});
}

TEST_CASE("rules 26 to 28: the router") {
  const std::string one = "/policy.hf_config_overrides={num_experts_per_tok: 1}",
                    biased = "/policy.hf_config_overrides={scoring_func: sigmoid}";
  check_rules(kExperts, {{{"moe_router_pre_softmax=false", one},
                          "moe_router_pre_softmax: false with num_experts_per_tok 1 gives every expert the weight 1",
                          {"moe_router_pre_softmax=true", one}},
                         {{"moe_router_enable_expert_bias=true"},
                          "moe_router_enable_expert_bias: needs moe_router_score_function: sigmoid, got softmax",
                          {"moe_router_enable_expert_bias=true", biased}},
                         {{"moe_router_enable_expert_bias=true", "moe_router_score_function=sigmoid"},
                          "moe_router_enable_expert_bias: true, but the model's routers have no expert bias; nearest: "
                          "false",
                          {"moe_router_enable_expert_bias=true", biased}},
                         {{"moe_router_score_function=softmax", biased},
                          "moe_router_score_function: softmax does not go with the expert bias of this model; nearest: "
                          "sigmoid",
                          {"moe_router_score_function=sigmoid", biased}},
                         {{"moe_router_load_balancing_type=[aux_loss, z_loss]", "moe_aux_loss_coeff=[0.1, 0.2]"},
                          "moe_router_load_balancing_type: got 'z_loss', wanted one of none, aux_loss, seq_aux_loss, "
                          "global_aux_loss",
                          {"moe_router_load_balancing_type=[aux_loss, seq_aux_loss]", "moe_aux_loss_coeff=[0.1, 0.2]"}},
                         {{"moe_router_load_balancing_type=[aux_loss, seq_aux_loss]", "moe_aux_loss_coeff=0.1"},
                          "moe_aux_loss_coeff: got 1 of them, wanted one for each of the 2 entries of "
                          "moe_router_load_balancing_type",
                          {"moe_router_load_balancing_type=[aux_loss, seq_aux_loss]", "moe_aux_loss_coeff=[0.1, 0.2]"}},
                         {{"moe_router_load_balancing_type=[aux_loss]", "moe_aux_loss_coeff=[-0.1]"},
                          "moe_aux_loss_coeff: got -0.1, wanted at least 0",
                          {"moe_router_load_balancing_type=[aux_loss]", "moe_aux_loss_coeff=[0.1]"}},
                         {{"moe_router_group_topk=2"},
                          "moe_router_group_topk: 2 needs moe_router_num_groups, got none; nearest: 2",
                          {"moe_router_group_topk=2", "moe_router_num_groups=4"}},
                         {{"moe_router_group_topk=2", "moe_router_num_groups=5"},
                          "moe_router_num_groups 5 does not divide num_experts 12; nearest: 4 or 6",
                          {"moe_router_group_topk=2", "moe_router_num_groups=6"}},
                         {{"moe_router_group_topk=5", "moe_router_num_groups=4"},
                          "moe_router_group_topk: got 5, wanted at most moe_router_num_groups 4; nearest: 4",
                          {"moe_router_group_topk=4", "moe_router_num_groups=4"}}});
  CHECK(megatron_notice(kExperts, {"moe_aux_loss_coeff=0.1"}, "moe_aux_loss_coeff", "has no effect"));
  CHECK(megatron_notice(kExperts, {"moe_router_load_balancing_type=aux_loss", "moe_aux_loss_coeff=0"},
                        "moe_router_load_balancing_type", "moe_aux_loss_coeff is 0"));
  CHECK(megatron_notice(kExperts, {"moe_router_bias_update_rate=0.1"}, "moe_router_bias_update_rate",
                        "has no effect: the model's routers have no expert bias"));
}

TEST_CASE("an optimizer that is told not to be in bf16 follows policy.precision all the same") {
  CHECK(megatron_notice(kDense, {kOptimizer + "bf16=false", "/policy.precision=bfloat16"}, kOptimizer + "bf16",
                        "has no effect: the optimizer follows policy.precision, which is bfloat16"));
}

TEST_CASE("rules 24 and 25: gradients and the distributed optimizer") {
  const std::string distributed = kOptimizer + "use_distributed_optimizer=";
  check_rules(
      kDense,
      {{{kDdp + "overlap_param_gather=true", distributed + "false"},
        "overlap_param_gather: needs optimizer.use_distributed_optimizer: true, for without it nothing is gathered; "
        "nearest: false",
        {distributed + "false"}},
       {{kDdp + "average_in_collective=true", "calculate_per_token_loss=true"},
        "average_in_collective: does not go with calculate_per_token_loss: true, whose gradients are sums; nearest: "
        "false",
        {kDdp + "average_in_collective=true", "calculate_per_token_loss=false"}},
       {{kDdp + "num_distributed_optimizer_instances=3"},
        "got 3, wanted a divisor of the 8 ranks (data x context parallel) that share the optimizer; nearest: 2 or 4",
        {kDdp + "num_distributed_optimizer_instances=2"}},
       {{kDdp + "num_distributed_optimizer_instances=2", distributed + "false"},
        "num_distributed_optimizer_instances: 2 needs optimizer.use_distributed_optimizer: true; nearest: 1",
        {kDdp + "num_distributed_optimizer_instances=1", distributed + "false"}},
       {{kOptimizer + "exp_avg_dtype=bfloat16", kOptimizer + "use_precision_aware_optimizer=false"},
        "exp_avg_dtype: 'bfloat16' needs use_precision_aware_optimizer: true; nearest: float32",
        {kOptimizer + "exp_avg_dtype=bfloat16"}},
       {{kOptimizer + "exp_avg_dtype=bfloat16", distributed + "false"},
        "use_precision_aware_optimizer: needs use_distributed_optimizer: true for states that are not float32",
        {distributed + "false"}},
       {{kOptimizer + "optimizer=sgd", kOptimizer + "use_precision_aware_optimizer=true"},
        "use_precision_aware_optimizer: goes with optimizer adam, got sgd; nearest: false",
        {kOptimizer + "optimizer=sgd"}},
       {{kOptimizer + "optimizer_cpu_offload=true", kOptimizer + "use_precision_aware_optimizer=false"},
        "optimizer_cpu_offload: needs use_precision_aware_optimizer: true; nearest: true for both",
        {kOptimizer + "optimizer_cpu_offload=true", kOptimizer + "optimizer_offload_fraction=1.0"}}});
  const std::string strategy = kDdp + "data_parallel_sharding_strategy";
  check_rules(kDense, {{{strategy + "=optim_grads", kDdp + "use_megatron_fsdp=true", distributed + "false"},
                        "data_parallel_sharding_strategy: 'optim_grads' shares the optimizer's state and needs "
                        "optimizer.use_distributed_optimizer: true; nearest: no_shard",
                        {strategy + "=no_shard", kDdp + "use_megatron_fsdp=true", distributed + "false"}}});
  CHECK(megatron_notice(kDense, {strategy + "=optim_grads"}, strategy, "has its effect with use_megatron_fsdp: true"));
  CHECK(!megatron_notice(kDense, {strategy + "=optim_grads", kDdp + "use_megatron_fsdp=true"}, strategy, ""));
  CHECK(megatron_notice(kDense, {strategy + "=optim_grads", kDdp + "use_megatron_fsdp=true", kDdp + "bucket_size=9"},
                        kDdp + "bucket_size", "has no effect with optim_grads: a bucket is a layer"));
  CHECK(megatron_notice(kDense, {"calculate_per_token_loss=false"}, "calculate_per_token_loss",
                        "a loss is divided by the counts of the whole global batch"));
  CHECK(megatron_notice(kDense, {kDdp + "overlap_param_gather=true", kDdp + "overlap_grad_reduce=false"},
                        kDdp + "overlap_param_gather", "has no effect without overlap_grad_reduce: true"));
  CHECK(megatron_notice(kDense, {kDdp + "average_in_collective=true"}, kDdp + "average_in_collective",
                        "gradients are sums"));
  CHECK(megatron_notice(kDense, {"calculate_per_token_loss=false", kDdp + "average_in_collective=true"},
                        kDdp + "average_in_collective", "gradients are sums"));
}

TEST_CASE("the schedule of learning rate and weight decay") {
  check_rules(
      kDense,
      {{{kScheduler + "lr_warmup_iters=30", kScheduler + "lr_decay_iters=30"},
        "lr_warmup_iters: got 30, wanted fewer than the 30 steps of lr_decay_iters; nearest: 29",
        {kScheduler + "lr_warmup_iters=29", kScheduler + "lr_decay_iters=30"}},
       {{kScheduler + "lr_warmup_init=0.1", kOptimizer + "lr=0.01"},
        "lr_warmup_init: got 0.1, wanted at most optimizer.lr 0.01; nearest: 0.01",
        {kScheduler + "lr_warmup_init=0.01", kOptimizer + "lr=0.01"}},
       {{kScheduler + "lr_decay_style=cosine", kOptimizer + "lr=0.01", kOptimizer + "min_lr=0.1"},
        "min_lr: got 0.1, wanted at most optimizer.lr 0.01; nearest: 0.01",
        {kScheduler + "lr_decay_style=cosine", kOptimizer + "lr=0.01", kOptimizer + "min_lr=0.001"}},
       {{kScheduler + "lr_decay_style=WSD", kScheduler + "lr_decay_iters=1000", kScheduler + "lr_wsd_decay_iters=1001"},
        "lr_wsd_decay_iters: got 1001, wanted at most lr_decay_iters 1000; nearest: 1000",
        {kScheduler + "lr_decay_style=WSD", kScheduler + "lr_decay_iters=1000"}},
       {{kScheduler + "lr_decay_style=polynomial"},
        "got 'polynomial', wanted one of constant, linear, cosine",
        {kScheduler + "lr_decay_style=linear"}},
       {{kScheduler + "end_weight_decay=0.2"},
        "weight_decay_incr_style: constant, but start_weight_decay 0.01 and end_weight_decay 0.2 "
        "differ; nearest: linear",
        {kScheduler + "end_weight_decay=0.2", kScheduler + "weight_decay_incr_style=linear"}},
       {{kScheduler + "start_weight_decay=0.2", kScheduler + "weight_decay_incr_style=linear"},
        "end_weight_decay: got 0.01, wanted at least start_weight_decay 0.2; nearest: 0.2",
        {kScheduler + "start_weight_decay=0.0", kScheduler + "weight_decay_incr_style=linear"}}});
}

TEST_CASE("rule 30: recomputation") {
  const std::string on = "activation_checkpointing=true", selective = "recompute_granularity=selective",
                    modules = "recompute_modules=";
  check_rules(
      kDense,
      {{{on, "recompute_granularity=partial"},
        "recompute_granularity: got 'partial', wanted one of full, selective",
        {on, selective}},
       {{on, "recompute_num_layers=2"},
        "recompute_method: recompute_num_layers 2 needs uniform or block, got none; nearest: uniform",
        {on, "recompute_num_layers=2", "recompute_method=block"}},
       {{on, selective, "recompute_num_layers=2"},
        "recompute_num_layers: goes with recompute_granularity full, got selective, which reads recompute_modules",
        {on, selective}},
       {{on, "recompute_method=uniform", "recompute_num_layers=5", kPp + "2"},
        "recompute_num_layers: got 5, wanted 1 to 4, the layers of a stage; nearest: 4",
        {on, "recompute_method=uniform", "recompute_num_layers=4", kPp + "2"}},
       {{on, selective, modules + "[core_atn]"},
        "recompute_modules: got 'core_atn', wanted one of core_attn, mlp, moe, layernorm, moe_act, mla_up_proj, "
        "shared_experts; did you mean core_attn?",
        {on, selective, modules + "[core_attn, mlp]"}},
       {{on, selective, modules + "[moe_act]", "moe_grouped_gemm=false"},
        "moe_act needs moe_grouped_gemm: true",
        {on, selective, modules + "[moe_act]"}},
       {{on, selective, modules + "[mla_up_proj]"},
        "mla_up_proj needs a model with multi-head latent attention",
        {on, selective, modules + "[mla_up_proj]", "/policy.hf_config_overrides={kv_lora_rank: 16}",
         "/policy.generation.backend=vllm"}},
       {{on, selective, modules + "[shared_experts]", "moe_shared_expert_overlap=true"},
        "shared_experts does not go with moe_shared_expert_overlap: true; nearest: false",
        {on, selective, modules + "[shared_experts]"}}});
  CHECK(
      megatron_notice(kDense, {modules + "[mlp]"}, "recompute_modules", "has no effect without activation_checkpoint"));
  CHECK(megatron_notice(kDense, {on, modules + "[mlp]"}, "recompute_modules", "full recomputes whole layers"));
}

TEST_CASE("types agree with policy.precision") {
  check_rules(
      kDense,
      {{{kOptimizer + "bf16=true", kOptimizer + "fp16=true"},
        "optimizer.fp16: optimizer.bf16 is true as well, wanted one of them; nearest: false",
        {kOptimizer + "bf16=true"}},
       {{kOptimizer + "bf16=true", "/policy.precision=float32"},
        "optimizer.bf16: got true, but policy.precision is float32; nearest: false",
        {kOptimizer + "bf16=false", "/policy.precision=float32"}},
       {{"fp8_cfg.fp8_param=true"}, "fp8_cfg.fp8_param: needs fp8_cfg.enabled: true", {"fp8_cfg.fp8_param=false"}},
       {{"fp8_cfg.enabled=true", "fp8_cfg.fp8_recipe=delayed"},
        "fp8_cfg.fp8_recipe: the recipe delayed is not available in this version, wanted tensorwise or blockwise; "
        "nearest: tensorwise",
        {"fp8_cfg.enabled=true", "fp8_cfg.fp8_recipe=tensorwise"}},
       {{"fp8_cfg.enabled=true", "fp8_cfg.fp8_recipe=mxfp8"}, "nearest: blockwise", {"fp8_cfg.enabled=true"}},
       {{"fp8_cfg.enabled=true", "fp8_cfg.fp8_recipe=tensorwise", "fp8_cfg.fp8_param=true"},
        "fp8_cfg.fp8_param: parameters in FP8 are not available in this version, wanted false; nearest: false",
        {"fp8_cfg={enabled: true, fp8_recipe: tensorwise, fp8: hybrid}"}},
       {{"fp8_cfg={enabled: true, fp8_recipe: tensorwise}", "tensor_model_parallel_size=2", "sequence_parallel=true",
         "tp_comm_overlap=true"},
        "tp_comm_overlap: does not go with fp8_cfg.enabled: true in this version",
        {"fp8_cfg={enabled: true, fp8_recipe: tensorwise}", "tensor_model_parallel_size=2",
         "sequence_parallel=true"}}});
  check_says(MegatronFiles(kDense).error({"fp8_cfg={enabled: true, fp8: e5m2}"}), "wanted one of e4m3, hybrid");
}
