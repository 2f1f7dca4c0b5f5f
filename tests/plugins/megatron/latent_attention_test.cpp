// Latent attention shared out over tensor-parallel ranks, with and without sequence parallelism.
#include "tests/plugins/backend/agreement.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/megatron_policy.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

json sizes(int tp, int pp, int cp, bool sequence_parallel) {
  return {{"tensor_model_parallel_size", tp},
          {"pipeline_model_parallel_size", pp},
          {"context_parallel_size", cp},
          {"sequence_parallel", sequence_parallel}};
}

// By the number of ranks.
std::vector<TestLayout> layouts(int world) {
  const Packing four{4, false, false}, one{1, false, false}, padded{3, true, false};
  json recomputed = sizes(2, 1, 1, true);
  recomputed["activation_checkpointing"] = true;
  if (world == 2)
    return {{"latent", latent_model(), four, sizes(2, 1, 1, false)},
            {"latent", latent_model(), one, sizes(2, 1, 1, true)},
            {"direct queries", latent_model(/*direct_queries=*/true), padded, recomputed}};
  return {{"direct queries", latent_model(/*direct_queries=*/true), four, sizes(4, 1, 1, false)},
          {"latent", latent_model(), four, sizes(2, 1, 2, true)},
          {"latent", latent_model(), one, sizes(2, 2, 1, true)}};
}

void latent_agrees(const Rank& rank) {
  start_runtime(rank);
  for (const TestLayout& layout : layouts(rank.world))
    check_agrees(layout, [](const auto& dir, const json& sizes) { return megatron_policy(dir, sizes); });
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"latent_agrees", latent_agrees}});

}  // namespace

TEST_CASE("latent attention over tensor-parallel ranks agrees with plain autograd") {
  for (int world : {2, 4}) rank_process::run("latent_agrees", world);
}
