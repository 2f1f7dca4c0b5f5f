// The fact `bytes` against what ranks hold: layouts, forms of sharding, types of gradients, masters and states.
#include "tests/plugins/backend/held_bytes.hpp"
#include "tests/plugins/megatron/expert_model.hpp"

using namespace backend_test;

namespace {

const bool registered = add_scenarios({{"hold", hold}});

HeldCase held(const std::string& name, int world, const json& keys, const std::string& family = "llama",
              const std::string& precision = "bfloat16") {
  const json model = has_experts(family) ? expert_model(family) : megatron_model(family);
  return {name, world, held_model(model), megatron_policy("", keys, precision)};
}

json sharing(const char* strategy, bool fp32_gradients = true) {
  return {{"distributed_data_parallel_config",
           {{"data_parallel_sharding_strategy", strategy}, {"grad_reduce_in_fp32", fp32_gradients}}}};
}

// The highest point is that of the gradients alone where these outweigh a backward pass. On a GPU cuDNN's attention
// takes room for 4096 tokens however few there are (ragged_rows.cpp), 8 MiB of these heads: the MLPs are wide.
HeldCase converting(HeldCase result) {
  result.converts_gradients = true;
  result.model["intermediate_size"] = 2048;
  return result;
}

json optimizer(const json& keys) { return {{"optimizer", keys}}; }

}  // namespace

TEST_CASE("a rank of megatron holds what the manifest's fact says: forms of sharding and types") {
  for (const char* strategy : {"no_shard", "optim", "optim_grads", "optim_grads_params"})
    check_held(held(strategy, 2, sharing(strategy)));
  check_held(held("fp32", 2, sharing("optim"), "qwen3", "float32"));
  check_held(converting(held("fp16", 1, sharing("no_shard", false), "llama", "float16")));
  check_held(converting(held("bf16 gradients", 1, sharing("optim", false))));
  check_held(held("whole masters", 2, optimizer({{"use_precision_aware_optimizer", false}})));
  check_held(held("narrow masters", 2, optimizer({{"main_params_dtype", "float16"}})));
  check_held(held("narrow states", 2, optimizer({{"exp_avg_dtype", "fp8"}, {"exp_avg_sq_dtype", "bfloat16"}})));
  check_held(
      held("states on the host", 2, optimizer({{"optimizer_cpu_offload", true}, {"optimizer_offload_fraction", 0.5}})));
  check_held(held("SGD", 2, optimizer({{"optimizer", "sgd"}})));
  json replicas = sharing("optim");
  replicas["distributed_data_parallel_config"]["num_distributed_optimizer_instances"] = 2;
  check_held(held("two instances", 4, replicas));
}

TEST_CASE("a rank of megatron holds what the manifest's fact says: layouts") {
  check_held(held("TP2 PP2", 4, {{"tensor_model_parallel_size", 2}, {"pipeline_model_parallel_size", 2}}));
  check_held(held("CP2 DP2", 4, {{"context_parallel_size", 2}}));
  check_held(held("PP2, uneven", 2, {{"pipeline_model_parallel_size", 2}, {"num_layers_in_first_pipeline_stage", 1}}));
  check_held(held("PP4", 4, {{"pipeline_model_parallel_size", 4}}));
  HeldCase tied = held("PP2, tied", 2, {{"pipeline_model_parallel_size", 2}});
  tied.model["tie_word_embeddings"] = true;
  check_held(tied);
  check_held(held("EP2 DP2", 4, {{"expert_model_parallel_size", 2}}, "mixtral"));
  check_held(held("TP2 ETP1 EP2, sequence parallel", 2,
                  {{"tensor_model_parallel_size", 2},
                   {"expert_tensor_parallel_size", 1},
                   {"expert_model_parallel_size", 2},
                   {"sequence_parallel", true}},
                  "qwen2_moe"));
  check_held(held("frozen routers", 2, {{"freeze_moe_router", true}}, "mixtral"));
  check_held(held("PP2, a dense layer first", 2, {{"pipeline_model_parallel_size", 2}}, "deepseek_v3"));
}
