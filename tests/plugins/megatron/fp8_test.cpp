// FP8 linears under tensor, pipeline and data parallelism.
#include "tests/plugins/backend/fp8.hpp"
#include "tests/plugins/backend/fixed_order.hpp"
#include "tests/plugins/backend/replay.hpp"
#include "tests/plugins/backend/scenarios.hpp"
#include "tests/plugins/megatron/expert_model.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

auto with(const json& sizes) {
  return [sizes](const std::filesystem::path& dir, const std::string& precision, const json& fp8) {
    json keys = sizes;
    keys["fp8_cfg"] = fp8;
    return megatron_policy(dir, keys, precision);
  };
}

const json kFp32Gradients = {{"distributed_data_parallel_config", {{"grad_reduce_in_fp32", true}}}};

void trains(const Rank& rank) {
  start_runtime(rank);
  for (const char* recipe : {"tensorwise", "blockwise"}) check_fp8_trains(with(kFp32Gradients), recipe);
  if (rank.world == 2) {
    json sizes = {{"tensor_model_parallel_size", 2}, {"sequence_parallel", true}};
    check_fp8_trains(with(sizes));  // gradients in the parameters' type
    sizes.update(kFp32Gradients);
    for (const char* recipe : {"tensorwise", "blockwise"}) check_fp8_trains(with(sizes), recipe);
    check_fp8_trains(with({{"tensor_model_parallel_size", 2}}));
  }
  runtime_test::runtime().stop();
}

// What runs again makes the same casts, and so the same bits.
void recomputes(const Rank& rank) {
  const FixedOrder order;
  start_runtime(rank);
  const TemporaryDir dir;
  write_fp8_model(dir.path());
  Weights want;
  for (const json& recompute : {json::object(), json{{"activation_checkpointing", true}},
                                json{{"activation_checkpointing", true},
                                     {"recompute_granularity", "selective"},
                                     {"recompute_modules", {"core_attn", "mlp", "layernorm"}}}}) {
    json sizes = kFp32Gradients;
    sizes.update(recompute);
    Instance backend(with(sizes)(dir.path(), "bfloat16", fp8_keys("hybrid")));
    REQUIRE_MESSAGE(backend.code() == HEXAD_OK, backend.error());
    auto batches = backend.batches(make_sequences(9, 5), {2, false, false});
    backend.train(batches, kFp8Normalizer, kFp8Temperature);
    const Weights got = backend.weights(HEXAD_WEIGHTS_GRADIENTS);
    if (!want.empty()) CHECK(same(got, want));
    want = got;
  }
  runtime_test::runtime().stop();
}

// Routed experts too, on one rank and over two. Routes are given: routers see what rounding has changed, and a token
// that goes elsewhere is no error of FP8.
void trains_experts(const Rank& rank) {
  start_runtime(rank);
  const json model = fp8_expert_model();
  const TemporaryDir dir;
  write_fp8_model(dir.path(), model);
  const auto config_of_model = hexad::modeling::load_model_config(dir.path());
  const auto route = [&](const Pack& pack) { return invented_routes(config_of_model, pack); };
  const auto policy = [&](const auto& folder, const std::string& precision, const json& fp8) {
    json sizes = kFp32Gradients;
    if (rank.world == 2) sizes.update({{"expert_model_parallel_size", 2}, {"moe_token_dispatcher_type", "alltoall"}});
    json result = with(sizes)(folder, precision, fp8);
    result["router_replay"] = {{"enabled", true}};
    return result;
  };
  for (const char* recipe : {"tensorwise", "blockwise"}) check_fp8_trains(policy, recipe, model, route);
  runtime_test::runtime().stop();
}

const bool registered =
    add_scenarios({{"fp8_trains", trains}, {"fp8_recomputes", recomputes}, {"fp8_trains_experts", trains_experts}});

}  // namespace

TEST_CASE("FP8 trains near bf16 and fp32 on one and two ranks") {
  for (int world : {1, 2}) rank_process::run("fp8_trains", world);
}

TEST_CASE("steps in FP8 of models with experts are those of a plain step, on one and two ranks") {
  for (int world : {1, 2}) rank_process::run("fp8_trains_experts", world);
}

TEST_CASE("FP8 gradients do not depend on what is recomputed") { rank_process::run("fp8_recomputes", 1); }

TEST_CASE("FP8 log-probs repeat, and gradients that are not finite skip the step") {
  one_rank();
  for (const char* recipe : {"tensorwise", "blockwise"}) check_fp8_passes(with(kFp32Gradients), recipe);
}

TEST_CASE("each FP8 recipe has log-probs of its own") {
  one_rank();
  check_fp8_recipes(with(kFp32Gradients));
}

TEST_CASE("FP8 keys that are wrong or not available are refused") {
  one_rank();
  check_fp8_errors(with(kFp32Gradients), "megatron_cfg");
}
