#include "tests/plugins/backend/batch_invariant.hpp"

#include "tests/plugins/backend/scenarios.hpp"

using namespace backend_test;

TEST_CASE("batch-invariant log-probs of FSDP have one sequence's bits in every packing, or are refused") {
  one_rank();
  check_batch_invariant([](const auto& dir, const std::string& precision) { return policy(dir, precision); });
  check_batch_invariant(
      [](const auto& dir, const std::string& precision) { return policy(dir, precision, /*checkpointing=*/true); });
}
