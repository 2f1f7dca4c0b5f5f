// Router replay in every kind of layout.
#include "tests/plugins/backend/replay.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/expert_model.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

json layout(int tp, int pp, int cp, int ep, const json& more = json::object()) {
  json sizes = {{"tensor_model_parallel_size", tp}, {"pipeline_model_parallel_size", pp}, {"context_parallel_size", cp},
                {"expert_model_parallel_size", ep}, {"expert_tensor_parallel_size", 1},   {"sequence_parallel", tp > 1},
                {"moe_shared_expert_overlap", true}};
  sizes.update(more);
  return sizes;
}

struct Case {
  std::string family;
  Packing recorded, trained;
  json sizes;
};

std::vector<Case> cases(int world) {
  const Packing four{4, false, false}, one{1, false, false}, padded{3, true, false};
  switch (world) {
    case 1: return {{"qwen3_moe", four, one, layout(1, 1, 1, 1, {{"activation_checkpointing", true}})}};
    case 2:
      return {{"qwen3_moe", four, padded, layout(1, 1, 1, 2)},
              {"mixtral", one, four, layout(2, 1, 1, 1)},
              {"deepseek_v3", one, four, layout(1, 1, 2, 2)},
              {"deepseek_v3", four, one, layout(1, 2, 1, 1, {{"virtual_pipeline_model_parallel_size", 2}})}};
    default:  // none with key biases: their gradient nearly vanishes, so that a relative error is rounding alone
      return {{"deepseek_v3", four, one, layout(1, 2, 1, 2)}, {"deepseek_v3", one, four, layout(2, 1, 1, 4)}};
  }
}

void replays(const Rank& rank) {
  start_runtime(rank);
  for (const Case& c : cases(rank.world)) {
    INFO(c.family << " " << c.sizes.dump());
    const auto policy_of = [&](const auto& dir) { return megatron_policy(dir, c.sizes); };
    check_replay(replay_errors(expert_model(c.family), c.recorded, c.trained, policy_of));
    check_given(given_errors(expert_model(c.family), c.trained, policy_of));
  }
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"replays", replays}});

}  // namespace

TEST_CASE("training replays the routing of the log-prob pass or the rollout, whatever the layout") {
  for (int world : {1, 2, 4}) rank_process::run("replays", world);
}
