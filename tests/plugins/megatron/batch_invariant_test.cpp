#include "tests/plugins/backend/batch_invariant.hpp"

#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/megatron_policy.hpp"

using namespace backend_test;

TEST_CASE("batch-invariant log-probs of Megatron have one sequence's bits in every packing, or are refused") {
  one_rank();
  check_batch_invariant(
      [](const auto& dir, const std::string& precision) { return megatron_policy(dir, json::object(), precision); });
}
