// Loss, gradients and updated weights do not depend on the number of ranks, packing, micro-batch size, activation
// checkpointing or reshard_after_forward; and the tests that say so can fail.
#include "tests/plugins/backend/comparison.hpp"
#include "tests/plugins/backend/scenarios.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

struct Variant {
  std::string family;
  Packing packing;
  bool checkpointing, reshard;
};

BoundedErrors three_steps(const Variant& variant) {
  return three_steps(tiny_config(variant.family), variant.packing, [&](const std::filesystem::path& dir) {
    return policy(dir, "float32", variant.checkpointing, variant.reshard);
  });
}

std::string text_of(const Variant& v) {
  return v.family + ", " + std::to_string(v.packing.sequences) + (v.packing.padded ? " padded" : " packed") +
         (v.checkpointing ? ", checkpointing" : "") + (v.reshard ? ", reshard" : "");
}

void agrees(const Rank& rank) {
  start_runtime(rank);
  const std::vector<Variant> variants = {
      {"llama", {11, false, false}, false, true},      {"llama", {2, false, false}, true, true},
      {"llama", {3, true, false}, false, false},       {"llama", {1, true, false}, true, false},
      {"qwen3", {4, false, false}, false, true},       {"qwen3", {1, false, false}, false, false},
      {"qwen3", {5, true, false}, true, true},         {"mistral", {4, false, false}, true, true},
      {"qwen2", {4, true, false}, false, true},        {"qwen3_moe", {4, false, false}, false, true},
      {"qwen3_moe", {5, true, false}, true, true},     {"deepseek_v3", {3, false, false}, true, true},
      {"deepseek_v3", {4, true, false}, false, false},
  };
  for (const Variant& variant : variants) {
    const BoundedErrors errors = three_steps(variant);
    INFO(text_of(variant) << ": loss " << errors.loss << " grad " << errors.grad << " weight " << errors.weight);
    CHECK(errors.loss <= errors.bound.loss);
    CHECK(errors.grad <= errors.bound.grad);
    CHECK(errors.weight <= errors.bound.weight);
    CHECK(errors.norm <= errors.bound.norm);
  }
  runtime_test::runtime().stop();
}

void leaked_attention(const Rank& rank) {
  start_runtime(rank);
  const BoundedErrors errors = three_steps({"llama", {4, false, true}, false, true});
  CHECK(errors.loss > 1e-3);
  CHECK(errors.grad > 1e-2);
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"agrees", agrees}, {"leaked_attention", leaked_attention}});

}  // namespace

// Two and four ranks, and every other dimension of the mesh: tests/plugins/layouts.
TEST_CASE("1 and 3 ranks agree with plain autograd") {
  for (int world : {1, 3}) rank_process::run("agrees", world);
}
TEST_CASE("the comparison notices attention across packed rows") { rank_process::run("leaked_attention", 1); }
