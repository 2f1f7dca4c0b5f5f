// Ways to exchange keys and values that do not fit the ranks or the model are refused with the numbers and what fits.
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/megatron_policy.hpp"

using namespace backend_test;

namespace {

std::string error_of(const std::filesystem::path& model, const json& type, const json& hierarchy = nullptr) {
  Instance backend(megatron_policy(
      model,
      {{"context_parallel_size", 2}, {"cp_comm_type", type}, {"hierarchical_context_parallel_sizes", hierarchy}}));
  CHECK(backend.code() == HEXAD_INVALID_ARGUMENT);
  return backend.error();
}

void refuses_context_exchange(const rank_process::Rank& rank) {
  start_runtime(rank);
  const TemporaryDir dir;
  json model = megatron_model("llama");
  model["num_attention_heads"] = model["num_key_value_heads"] = 3;
  write_model(dir.path(), model);
  CHECK(error_of(dir.path(), "ring") ==
        "policy.megatron_cfg.cp_comm_type: got \"ring\", wanted one of p2p, all_gather, a2a, a2a+p2p");
  CHECK(
      error_of(dir.path(), {"p2p", "a2a"}) ==
      "policy.megatron_cfg.cp_comm_type: a list of 2, wanted one for each of num_hidden_layers 4, or one text for all");
  CHECK(
      error_of(dir.path(), "a2a") ==
      "policy.megatron_cfg.cp_comm_type: a2a shares the heads of a tensor-parallel rank, 3 and 3 of keys and values, "
      "among 2 ranks: the first must be a multiple of them, the second a multiple or a divisor; sizes that fit: 1, 3; "
      "or take p2p");
  CHECK(error_of(dir.path(), "a2a+p2p", {2, 1}).find("a2a+p2p shares the heads") != std::string::npos);
  for (const json& hierarchy : std::vector<json>{nullptr, {2, 2}, {2}, {0, 2}, {-1, -2}, {"2", "1"}, 2})
    CHECK(
        error_of(dir.path(), "a2a+p2p", hierarchy) ==
        "policy.megatron_cfg.hierarchical_context_parallel_sizes: got " + hierarchy.dump() +
            ", wanted the sizes of a2a+p2p's two exchanges, whose product is context_parallel_size 2; nearest: [2, 1]");
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"refuses_context_exchange", refuses_context_exchange}});

}  // namespace

TEST_CASE("exchanges of keys and values that do not fit are refused") {
  rank_process::run("refuses_context_exchange", 2);
}
