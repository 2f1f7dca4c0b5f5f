// Loss, gradients and updated weights do not depend on the device mesh, packing, micro-batch size, activation checkpointing or
// reshard_after_forward; and the tests that say so can fail.
#include "tests/plugins/backend/comparison.hpp"
#include "tests/plugins/backend/divisible_model.hpp"
#include "tests/plugins/backend/scenarios.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

constexpr double kTolerance = 1e-5;
// A key bias has no gradient but rounding (softmax does not see it), which Adam divides by its own size.
constexpr double kWeightTolerance = 5e-5;

struct Variant {
  std::string family;
  Packing packing;
  bool checkpointing, reshard;
};

Errors three_steps(const Variant& variant) {
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
    const Errors errors = three_steps(variant);
    INFO(text_of(variant) << ": loss " << errors.loss << " grad " << errors.grad << " weight " << errors.weight);
    CHECK(errors.loss <= kTolerance);
    CHECK(errors.grad <= kTolerance);
    CHECK(errors.weight <= kTolerance);
    CHECK(errors.norm <= kTolerance);
  }
  runtime_test::runtime().stop();
}

// ---- Meshes ---------------------------------------------------------------------------------------------------------

struct Layout {
  std::string family;
  Packing packing;
  json sizes;
};

json mesh(int tp, int cp, bool sequence_parallel = false, int replicas = 1) {
  return {{"tensor_parallel_size", tp},
          {"context_parallel_size", cp},
          {"sequence_parallel", sequence_parallel},
          {"dp_replicate_size", replicas}};
}

json with(json sizes, const char* key, const json& value) {
  sizes[key] = value;
  return sizes;
}

const char* const kHierarchy = "hierarchical_context_parallel_sizes";

// By the number of ranks; what is left over is data parallel.
std::vector<Layout> meshes(int world) {
  const Packing four{4, false, false}, one{1, false, false}, padded{3, true, false};
  const auto recomputed = [](const json& sizes) { return with(sizes, "activation_checkpointing", true); };
  const auto kept = [](const json& sizes) { return with(sizes, "reshard_after_forward", false); };
  switch (world) {
    case 2:
      return {{"llama", four, mesh(2, 1)},
              {"qwen3", padded, mesh(2, 1)},
              {"llama", four, mesh(2, 1, true)},
              {"qwen3", one, recomputed(mesh(2, 1, true))},
              {"qwen2", padded, mesh(2, 1, true)},
              {"mistral", four, mesh(1, 2)},
              {"llama", padded, mesh(1, 2)},
              {"qwen3", four, mesh(1, 1, false, 2)},
              {"qwen3_moe", four, mesh(1, 2)},
              {"deepseek_v3", one, recomputed(mesh(1, 2))},
              {"deepseek_v3", four, with(mesh(1, 2), "cp_comm_type", "a2a")},
              {"mistral", padded, with(mesh(1, 2), "cp_comm_type", "all_gather")}};
    case 4:
      return {{"llama", four, mesh(4, 1)},
              {"qwen2", one, mesh(4, 1, true)},
              {"qwen3", four, mesh(2, 2, true)},
              {"mistral", padded, mesh(2, 2)},
              {"llama", padded, mesh(2, 1)},
              {"qwen3", one, kept(mesh(2, 1, true))},
              {"qwen2", four, mesh(1, 2)},
              {"mistral", four, mesh(1, 4)},
              {"llama", one, with(with(mesh(1, 4), "cp_comm_type", "a2a+p2p"), kHierarchy, {2, 2})},
              {"qwen3", padded, with(mesh(2, 2, true), "cp_comm_type", "a2a")},
              {"qwen3", padded, mesh(1, 1, false, 2)},
              {"llama", four, mesh(2, 1, false, 2)}};
    default:
      return {{"qwen3", four, mesh(2, 2, true)},
              {"llama", padded, mesh(2, 1, false, 2)},
              {"mistral", one, mesh(4, 1)},
              {"qwen2", four, recomputed(mesh(2, 2, true, 2))}};
  }
}

void meshes_agree(const Rank& rank) {
  start_runtime(rank);
  for (const Layout& layout : meshes(rank.world)) {
    const Errors errors = three_steps(divisible_model(layout.family), layout.packing, [&](const auto& dir) {
      json config = policy(dir);
      config["dtensor_cfg"].update(layout.sizes);
      return config;
    });
    INFO(layout.family << ", " << layout.packing.sequences << " in a micro-batch, " << layout.sizes.dump() << ": loss "
                       << errors.loss << " grad " << errors.grad << " weight " << errors.weight << " norm "
                       << errors.norm << " logprob " << errors.logprob);
    CHECK(errors.loss <= kTolerance);
    CHECK(errors.grad <= kTolerance);
    CHECK(errors.weight <= kWeightTolerance);
    CHECK(errors.norm <= kTolerance);
    CHECK(errors.logprob <= kTolerance);
  }
  runtime_test::runtime().stop();
}

void leaked_attention(const Rank& rank) {
  start_runtime(rank);
  const Errors errors = three_steps({"llama", {4, false, true}, false, true});
  CHECK(errors.loss > 1e-3);
  CHECK(errors.grad > 1e-2);
  runtime_test::runtime().stop();
}

const bool registered =
    add_scenarios({{"agrees", agrees}, {"meshes_agree", meshes_agree}, {"leaked_attention", leaked_attention}});

}  // namespace

TEST_CASE("1, 2, 3 and 4 ranks agree with plain autograd") {
  for (int world : {1, 2, 3, 4}) rank_process::run("agrees", world);
}
TEST_CASE(
    "tensor, sequence, context and hybrid sharded parallel meshes of 2, 4 and 8 ranks agree with plain autograd") {
  for (int world : {2, 4, 8}) rank_process::run("meshes_agree", world);
}
TEST_CASE("the comparison notices attention across packed rows") { rank_process::run("leaked_attention", 1); }
