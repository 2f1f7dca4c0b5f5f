// Layouts that do not fit a model's experts are refused with the numbers and what fits.
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/backend/temporary_dir.hpp"
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

const bool registered = add_scenarios({{"refuses_expert_sizes", refuses_expert_sizes}});

}  // namespace

TEST_CASE("expert sizes that do not fit the model are refused") { rank_process::run("refuses_expert_sizes", 2); }
