// Router replay over data- and context-parallel ranks.
#include "tests/plugins/backend/replay.hpp"
#include "tests/plugins/backend/scenarios.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

void replays(const Rank& rank) {
  start_runtime(rank);
  for (const int cp : {1, 2}) {
    INFO("context parallel " << cp);
    const auto policy_of = [&](const auto& dir) {
      json result = policy(dir);
      result["dtensor_cfg"]["context_parallel_size"] = cp;
      return result;
    };
    check_replay(replay_errors(tiny_config("qwen3_moe"), {4, false, false}, {3, true, false}, policy_of));
    check_given(given_errors(tiny_config("qwen3_moe"), {3, true, false}, policy_of));
  }
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"replays", replays}});

}  // namespace

TEST_CASE("dtensor replays the routing of the log-prob pass or the rollout") { rank_process::run("replays", 2); }
