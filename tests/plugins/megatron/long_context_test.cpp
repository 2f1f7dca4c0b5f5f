// A long sequence over context-parallel ranks: the same loss and gradients, and activations that shrink with the ranks.
#include "tests/plugins/backend/long_context.hpp"

#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/megatron_policy.hpp"

using namespace backend_test;

namespace {

const bool registered = add_scenarios({{"long_context", long_context_rank}});

LongStep run_step(const TemporaryDir& dir, int ranks, json sizes) {
  sizes["context_parallel_size"] = ranks;
  json policy = megatron_policy(dir / "model", sizes);
  policy["logprob_chunk_size"] = 256;
  const std::string name = "step" + std::to_string(ranks) + sizes.value("cp_comm_type", "");
  return run_long_step((dir / name).string(), "megatron", policy, 4096, ranks);
}

}  // namespace

TEST_CASE("a sequence of 4096 tokens over 2 and 4 context-parallel ranks") {
  const TemporaryDir dir;
  write_model(dir / "model", long_model());
  const LongStep alone = run_step(dir, 1, json::object());
  const auto check = [&](int ranks, const json& sizes) {
    if (!test_device::fits(ranks, "long_context on " + std::to_string(ranks) + " ranks")) return;
    CAPTURE(sizes.dump());
    check_long_step(run_step(dir, ranks, sizes), alone, ranks);
  };
  check(2, json::object());
  check(4, json::object());
  check(4, {{"cp_comm_type", "a2a"}});
}
