// Keys of dtensor_cfg and megatron_cfg by what a step does: with another value other numbers, operators, messages or
// bytes, on one rank at least. What a key means exactly is for the tests of the part that reads it.
#include "tests/plugins/backend/comparison.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/backend/step_record.hpp"
#include "tests/plugins/layouts/layout_row.hpp"

using namespace backend_test;
using layouts_test::Row;
using rank_process::Rank;

namespace {

// `row`: a line of the matrix, where `key` is added as ONE and as OTHER. A key that starts with "/" is of policy.
struct KeyCase {
  int world;
  const char *row, *key, *one, *other;
};

constexpr KeyCase kDtensor[] = {
    {1, "dtensor llama pack2", "/optimizer.kwargs.betas", "[0.9,0.999]", "[0.8,0.9]"},
    {1, "dtensor llama pack2", "/optimizer.kwargs.eps", "1e-8", "1e-2"},
    {1, "dtensor llama pack2", "/hf_config_overrides", "{}", "{\"rope_theta\": 100.0}"},
    {1, "dtensor llama pack2", "activation_checkpointing", "false", "true"},
    {2, "dtensor llama pack2", "tensor_parallel_size", "1", "2"},
    {2, "dtensor llama pack2 tp2", "sequence_parallel", "false", "true"},
    {2, "dtensor llama pack2", "context_parallel_size", "1", "2"},
    {2, "dtensor llama pack2 cp2", "cp_comm_type", "\"p2p\"", "\"all_gather\""},
    {4, "dtensor llama pack2 cp4 cp_comm_type=a2a+p2p", "hierarchical_context_parallel_sizes", "[2,2]", "[1,4]"},
    {2, "dtensor llama pack2", "dp_replicate_size", "1", "2"},
    {2, "dtensor llama pack1", "reshard_after_forward", "true", "false"},
    {2, "dtensor llama pack1", "defer_fsdp_grad_sync", "true", "false"},
    {2, "dtensor qwen3_moe pack2", "expert_parallel_size", "1", "2"},
};

constexpr KeyCase kMegatron[] = {
    {1, "megatron llama pack2", "/hf_config_overrides", "{}", "{\"rope_theta\": 100.0}"},
    {1, "megatron llama pack2", "activation_checkpointing", "false", "true"},
    {1, "megatron llama pack2 recompute", "recompute_granularity", "\"full\"", "\"selective\""},
    {1, "megatron llama pack2 recompute recompute_granularity=full recompute_num_layers=1", "recompute_method",
     "\"uniform\"", "\"block\""},
    {1, "megatron llama pack2 recompute recompute_granularity=full recompute_method=block", "recompute_num_layers", "1",
     "2"},
    {1, "megatron llama pack2 recompute recompute_granularity=selective", "recompute_modules", "[\"core_attn\"]",
     "[\"mlp\"]"},
    {1, "megatron llama pack2", "optimizer.optimizer", "\"adam\"", "\"sgd\""},
    {1, "megatron llama pack2", "optimizer.weight_decay", "0.0", "0.5"},
    {1, "megatron llama pack2", "optimizer.adam_beta1", "0.9", "0.5"},
    {1, "megatron llama pack2", "optimizer.adam_beta2", "0.999", "0.5"},
    {1, "megatron llama pack2", "optimizer.adam_eps", "1e-8", "1e-2"},
    {1, "megatron llama pack2 optimizer.optimizer=sgd", "optimizer.sgd_momentum", "0.9", "0.5"},
    {2, "megatron llama pack2", "optimizer.use_distributed_optimizer", "true", "false"},
    {1, "megatron llama pack2 bf16", "optimizer.use_precision_aware_optimizer", "false", "true"},
    {1, "megatron llama pack2 bf16 optimizer.use_precision_aware_optimizer=true", "optimizer.main_params_dtype",
     "\"float32\"", "\"float16\""},
    {1, "megatron llama pack2 bf16 optimizer.use_precision_aware_optimizer=true", "optimizer.main_grads_dtype",
     "\"float32\"", "\"bfloat16\""},
    {1, "megatron llama pack2 bf16 optimizer.use_precision_aware_optimizer=true", "optimizer.exp_avg_dtype",
     "\"float32\"", "\"bfloat16\""},
    {1, "megatron llama pack2 bf16 optimizer.use_precision_aware_optimizer=true", "optimizer.exp_avg_sq_dtype",
     "\"float32\"", "\"bfloat16\""},
    {2, "megatron llama pack2", "tensor_model_parallel_size", "1", "2"},
    {2, "megatron llama pack2 tp2", "sequence_parallel", "false", "true"},
    {2, "megatron llama pack2 tp2 sp", "tp_comm_overlap", "false", "true"},
    {2, "megatron llama pack2", "context_parallel_size", "1", "2"},
    {2, "megatron llama pack2 cp2", "cp_comm_type", "\"p2p\"", "\"all_gather\""},
    {4, "megatron llama pack2 cp4 cp_comm_type=a2a+p2p", "hierarchical_context_parallel_sizes", "[2,2]", "[1,4]"},
    {2, "megatron llama pack2", "pipeline_model_parallel_size", "1", "2"},
    {2, "megatron llama pack2 pp2", "virtual_pipeline_model_parallel_size", "null", "2"},
    {2, "megatron llama pack2 pp2", "num_layers_per_virtual_pipeline_stage", "null", "1"},
    {2, "megatron llama pack2 pp2", "num_layers_in_first_pipeline_stage", "null", "1"},
    {2, "megatron llama pack2 pp2", "num_layers_in_last_pipeline_stage", "null", "1"},
    {2, "megatron llama pack2 pp2", "pipeline_model_parallel_layout", "\"Et*2|t*2L\"", "\"Et|t*3L\""},
    {2, "megatron llama pack2 pp2 account_for_loss_in_pipeline_split=true", "account_for_embedding_in_pipeline_split",
     "true", "false"},
    {2, "megatron llama pack2 pp2 account_for_embedding_in_pipeline_split=true", "account_for_loss_in_pipeline_split",
     "true", "false"},
    {2, "megatron llama pack1 pp2 vpp2", "overlap_p2p_comm", "true", "false"},
    {2, "megatron llama pack1 pp2 vpp2", "batch_p2p_comm", "false", "true"},
    {2, "megatron llama pack1 pp2 vpp2", "microbatch_group_size_per_vp_stage", "2", "4"},
    {4, "megatron llama pack2 pp2", "rank_order", "\"tp-cp-ep-dp-pp\"", "\"tp-cp-pp-ep-dp\""},
    {2, "megatron llama pack2", "distributed_data_parallel_config.bucket_size", "null", "300"},
    {2, "megatron llama pack2 distributed_data_parallel_config.use_megatron_fsdp=true",
     "distributed_data_parallel_config.data_parallel_sharding_strategy", "\"optim\"", "\"optim_grads_params\""},
    {2, "megatron llama pack2", "distributed_data_parallel_config.use_megatron_fsdp", "false", "true"},
    {2, "megatron llama pack2", "distributed_data_parallel_config.use_custom_fsdp", "false", "true"},
    {2, "megatron llama pack2 bf16", "distributed_data_parallel_config.grad_reduce_in_fp32", "true", "false"},
    {2, "megatron llama pack2 distributed_data_parallel_config.bucket_size=300",
     "distributed_data_parallel_config.overlap_grad_reduce", "true", "false"},
    {2, "megatron llama pack2", "distributed_data_parallel_config.overlap_param_gather", "true", "false"},
    {2, "megatron llama pack2", "distributed_data_parallel_config.num_distributed_optimizer_instances", "1", "2"},
    {2, "megatron qwen3_moe pack2", "expert_model_parallel_size", "1", "2"},
    {2, "megatron qwen3_moe pack2 tp2 sp", "expert_tensor_parallel_size", "2", "1"},
    {2, "megatron qwen3_moe pack2 ep2", "moe_token_dispatcher_type", "\"alltoall\"", "\"allgather\""},
    {2, "megatron qwen2_moe pack2 ep2", "moe_shared_expert_overlap", "false", "true"},
    {1, "megatron qwen3_moe pack2", "freeze_moe_router", "false", "true"},
    {1, "megatron qwen3_moe pack2", "moe_router_dtype", "null", "\"fp64\""},
    {1, "megatron qwen3_moe pack2", "moe_z_loss_coeff", "null", "0.1"},
    {1, "megatron qwen3_moe pack2 moe_router_load_balancing_type=aux_loss", "moe_aux_loss_coeff", "0.0", "0.1"},
    {1, "megatron qwen3_moe pack2 moe_router_load_balancing_type=aux_loss", "moe_aux_loss_coeff", "0.0", "null"},
    {1, "megatron qwen3_moe pack2 moe_aux_loss_coeff=0.1", "moe_router_load_balancing_type", "\"aux_loss\"",
     "\"seq_aux_loss\""},
    {1, "megatron qwen3_moe pack2 moe_router_load_balancing_type=aux_loss moe_aux_loss_coeff=0.1",
     "calculate_per_token_loss", "true", "false"},
    {1, "megatron qwen3_moe pack2", "moe_router_score_function", "\"softmax\"", "\"sigmoid\""},
    {1, "megatron qwen3_moe pack2", "moe_router_pre_softmax", "true", "false"},
    {1, "megatron qwen3_moe pack2 moe_router_group_topk=1", "moe_router_num_groups", "2", "1"},
    {1, "megatron qwen3_moe pack2 moe_router_num_groups=2", "moe_router_group_topk", "1", "2"},
    {1, "megatron deepseek_v3 pack2", "moe_router_bias_update_rate", "0.0", "0.1"},
    {1, "megatron qwen3_moe pack2", "moe_expert_capacity_factor", "null", "0.5"},
    {1, "megatron qwen3_moe pack2 moe_expert_capacity_factor=0.5", "moe_token_drop_policy", "\"probs\"",
     "\"position\""},
    {1, "megatron qwen3_moe pack2 moe_expert_capacity_factor=2.0", "moe_pad_expert_input_to_capacity", "false", "true"},
};

json with(json policy, const Row& row, std::string key, const char* value) {
  std::replace(key.begin(), key.end(), '.', '/');
  policy[json::json_pointer(key[0] == '/' ? key : "/" + row.backend + "_cfg/" + key)] = json::parse(value);
  return policy;
}

std::string steps_with(const KeyCase& test, const char* value) {
  const TemporaryDir folder;
  const Row row = Row::parse(test.row);
  write_model(folder.path(), row.model());
  return recorded_steps(with(row.policy(folder.path()), row, test.key, value), row.backend, row.packing);
}

void check(const KeyCase& test) {
  const std::string name = std::string(test.key) + ": " + test.row, one = steps_with(test, test.one);
  const bool repeats = one == steps_with(test, test.one), differs = one != steps_with(test, test.other);
  CHECK_MESSAGE(!one.starts_with("refused"), name << ": " << one.substr(0, 300));
  CHECK_MESSAGE(repeats, name << ": two equal runs");
  CHECK_MESSAGE(sum_over_ranks(differs) > 0, name);
}

// The rows of so many ranks; argument: the backend.
void keys(const Rank& rank) {
  start_runtime(rank);
  const bool dtensor = rank.argument == "dtensor";
  const std::span<const KeyCase> rows =
      dtensor ? std::span<const KeyCase>(kDtensor) : std::span<const KeyCase>(kMegatron);
  for (const KeyCase& test : rows)
    if (test.world == rank.world) check(test);
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"keys", keys}});

void check_each_key(const std::string& backend) {
  if (test_device::is_gpu()) return test_device::leave_out("keys of " + backend, "as two equal runs differ in bits");
  for (const int world : {1, 2, 4}) rank_process::run("keys", world, backend);
}

}  // namespace

TEST_CASE("each key of dtensor_cfg makes another step") { check_each_key("dtensor"); }

TEST_CASE("each key of megatron_cfg makes another step") { check_each_key("megatron"); }
