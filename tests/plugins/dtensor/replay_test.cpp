// Router replay over data-, context- and expert-parallel ranks.
#include "tests/plugins/backend/replay.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/expert_model.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

void replays(const Rank& rank) {
  start_runtime(rank);
  for (const json& mesh : {json::object(), json{{"context_parallel_size", 2}}, json{{"expert_parallel_size", 2}}}) {
    INFO(mesh.dump());
    const auto policy_of = [&](const auto& dir) {
      json result = policy(dir);
      result["dtensor_cfg"].update(mesh);
      return result;
    };
    check_replay(replay_errors(expert_model("qwen3_moe"), {4, false, false}, {3, true, false}, policy_of));
    check_given(given_errors(expert_model("qwen3_moe"), {3, true, false}, policy_of));
  }
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"replays", replays}});

}  // namespace

TEST_CASE("dtensor replays the routing of the log-prob pass or the rollout") { rank_process::run("replays", 2); }
