// Layouts that do not fit a model's experts are refused with the numbers and what fits.
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/expert_model.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

std::string error_of(const json& model, const json& sizes) {
  const TemporaryDir dir;
  write_model(dir.path(), model);
  Instance backend(megatron_policy(dir.path(), sizes));
  CHECK(backend.code() != HEXAD_OK);
  return backend.error();
}

void refuses_expert_sizes(const Rank& rank) {
  start_runtime(rank);
  json model = expert_model("qwen3_moe");
  CHECK(error_of(megatron_model("llama"), {{"expert_model_parallel_size", 2}}) ==
        "policy.megatron_cfg.expert_model_parallel_size is 2, but the model has no experts: set it to 1");
  CHECK(error_of(model, {{"tensor_model_parallel_size", 2}}) ==
        "a model with experts wants policy.megatron_cfg.sequence_parallel with tensor_model_parallel_size 2: set it to "
        "true, so that every rank routes its own tokens");
  model["num_experts"] = 5;
  CHECK(error_of(model, {{"expert_model_parallel_size", 2}}) ==
        "policy.megatron_cfg.expert_model_parallel_size is 2, which does not divide the number of experts = 5: take 1");
  model["moe_intermediate_size"] = 9;
  CHECK(error_of(model, {{"expert_tensor_parallel_size", 2}}) ==
        "policy.megatron_cfg.expert_tensor_parallel_size is 2, which does not divide the width of an expert = 9: "
        "take 1");
  runtime_test::runtime().stop();
}

void refuses_expert_keys(const Rank& rank) {
  start_runtime(rank);
  const json model = expert_model("qwen3_moe");
  const std::string at = "policy.megatron_cfg.";
  CHECK(
      error_of(model, {{"moe_router_enable_expert_bias", true}}) ==
      at + "moe_router_enable_expert_bias is true, but the routers of a qwen3_moe model have no expert bias: set it to "
           "false");
  CHECK(error_of(model, {{"moe_router_dtype", "fp16"}}) == at + "moe_router_dtype is fp16, wanted fp32, fp64 or null");
  CHECK(error_of(model, {{"moe_router_score_function", "relu"}}) ==
        at + "moe_router_score_function is relu, wanted softmax or sigmoid");
  CHECK(error_of(model, {{"moe_router_load_balancing_type", {"aux_loss", "other"}}, {"moe_aux_loss_coeff", {1, 1}}}) ==
        at + "moe_router_load_balancing_type is other, wanted none, aux_loss, seq_aux_loss or global_aux_loss");
  CHECK(error_of(model,
                 {{"moe_router_load_balancing_type", {"aux_loss", "seq_aux_loss"}}, {"moe_aux_loss_coeff", 0.1}}) ==
        at + "moe_aux_loss_coeff has 1 coefficients, wanted one for each of the 2 types of "
             "moe_router_load_balancing_type");
  CHECK(error_of(model, {{"moe_router_load_balancing_type", "aux_loss"}, {"moe_aux_loss_coeff", -1}}) ==
        at + "moe_aux_loss_coeff is -1, wanted 0 or more");
  CHECK(error_of(model, {{"moe_expert_capacity_factor", 0.0}}) ==
        at + "moe_expert_capacity_factor is 0.000000, wanted above 0");
  CHECK(error_of(model, {{"moe_token_drop_policy", "random"}}) ==
        at + "moe_token_drop_policy is random, wanted probs or position");
  CHECK(error_of(model, {{"moe_pad_expert_input_to_capacity", true}}) ==
        "router: moe_pad_expert_input_to_capacity needs moe_expert_capacity_factor");
  CHECK(error_of(expert_model("deepseek_v3"), {{"moe_router_score_function", "softmax"}}) ==
        "router: an expert bias needs the score function sigmoid or sqrtsoftplus");
  CHECK(error_of(model, {{"moe_shared_expert_overlap", true}, {"moe_token_dispatcher_type", "allgather"}}) ==
        at + "moe_shared_expert_overlap is true, which needs moe_token_dispatcher_type: alltoall, got allgather");
  runtime_test::runtime().stop();
}

const bool registered =
    add_scenarios({{"refuses_expert_sizes", refuses_expert_sizes}, {"refuses_expert_keys", refuses_expert_keys}});

}  // namespace

TEST_CASE("expert sizes that do not fit the model are refused") { rank_process::run("refuses_expert_sizes", 2); }

TEST_CASE("keys about experts that make no sense are refused") { rank_process::run("refuses_expert_keys", 1); }
