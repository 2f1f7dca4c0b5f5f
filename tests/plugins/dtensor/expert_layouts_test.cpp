// Latent attention and experts under tensor, sequence and expert parallelism, with the rest of the mesh.
#include "tests/plugins/backend/agreement.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/expert_model.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

json mesh(int tp, bool sequence_parallel, int ep = 1, int cp = 1, int replicas = 1) {
  return {{"tensor_parallel_size", tp},
          {"sequence_parallel", sequence_parallel},
          {"expert_parallel_size", ep},
          {"context_parallel_size", cp},
          {"dp_replicate_size", replicas}};
}

json recomputed(json sizes) {
  sizes["activation_checkpointing"] = true;
  return sizes;
}

json gathering(json sizes) {
  sizes["automodel_kwargs"] = {{"backend", {{"dispatcher", "torch"}}}};
  return sizes;
}

const Packing kFour{4, false, false}, kOne{1, false, false}, kPadded{3, true, false};

// By the number of ranks; what is left over is data parallel. One sequence a micro-batch leaves some ranks a dummy.
std::vector<TestLayout> layouts(int world) {
  const json qwen3 = expert_model("qwen3_moe"), qwen2 = expert_model("qwen2_moe"), mixtral = expert_model("mixtral"),
             latent = latent_model(), direct = latent_model(/*direct_queries=*/true), deepseek = latent_expert_model();
  switch (world) {
    case 2:
      return {{"latent", latent, kFour, mesh(2, false)},
              {"latent", latent, kOne, mesh(2, true)},
              {"direct queries", direct, kPadded, recomputed(mesh(2, true))},
              {"qwen3_moe", qwen3, kPadded, mesh(2, false)},
              {"mixtral", mixtral, kFour, recomputed(mesh(2, false))},
              {"deepseek", deepseek, kFour, mesh(2, false)},
              {"qwen2_moe", qwen2, kFour, mesh(2, true)},
              {"deepseek", deepseek, kOne, recomputed(mesh(2, true))},
              {"qwen3_moe", qwen3, kOne, mesh(1, false, 2)},
              {"qwen2_moe", qwen2, kPadded, gathering(recomputed(mesh(1, false, 2)))},
              {"mixtral", mixtral, kFour, mesh(1, false, 2, /*cp=*/2)},
              {"deepseek", deepseek, kFour, mesh(2, true, 2)}};
    case 4:
      return {{"direct queries", direct, kFour, mesh(2, true, 1, /*cp=*/2)},
              {"qwen2_moe", qwen2, kFour, mesh(4, false)},
              {"mixtral", mixtral, kOne, mesh(2, true)},
              {"qwen3_moe", qwen3, kOne, mesh(1, false, 2)},
              {"deepseek", deepseek, kOne, recomputed(mesh(1, false, 4))},
              {"qwen2_moe", qwen2, kOne, mesh(2, true, 2)},
              {"mixtral", mixtral, kFour, gathering(mesh(2, true, 4, /*cp=*/2))},
              {"qwen3_moe", qwen3, kPadded, mesh(1, false, 2, 1, /*replicas=*/2)}};
    default:
      return {{"deepseek", deepseek, kFour, mesh(2, true, 4, /*cp=*/2)},
              {"qwen3_moe", qwen3, kOne, mesh(2, true, 4, 1, /*replicas=*/2)}};
  }
}

void experts_agree(const Rank& rank) {
  start_runtime(rank);
  for (const TestLayout& layout : layouts(rank.world)) {
    check_agrees(layout, [](const auto& dir, const json& sizes) {
      json config = policy(dir);
      config["dtensor_cfg"].update(sizes);
      return config;
    });
  }
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"experts_agree", experts_agree}});

}  // namespace

TEST_CASE("latent attention and experts in meshes of 2, 4 and 8 ranks agree with plain autograd") {
  for (int world : {2, 4, 8}) rank_process::run("experts_agree", world);
}
