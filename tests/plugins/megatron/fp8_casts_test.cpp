// FP8 casts that stay where weights always do: tensor and pipeline parallelism, experts, and shards of weights.
#include "tests/plugins/backend/fp8_casts.hpp"
#include "tests/plugins/megatron/expert_model.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

const json kFp32Gradients = {{"distributed_data_parallel_config", {{"grad_reduce_in_fp32", true}}}};

json config_of(const std::filesystem::path& dir, const char* recipe, const json& sizes) {
  json keys = kFp32Gradients;
  keys.update(sizes, /*merge_objects=*/true);
  keys["fp8_cfg"] = fp8_keys("hybrid", recipe);
  return megatron_policy(dir, keys, "bfloat16");
}

const json kTensor = {{"tensor_model_parallel_size", 2}, {"sequence_parallel", true}},
           kPipeline = {{"pipeline_model_parallel_size", 2}}, kRecompute = {{"activation_checkpointing", true}};

json four_layers() {
  json model = fp8_model();
  model["num_hidden_layers"] = 4;
  return model;
}

void stay(const Rank& rank) {
  with_recipes(rank, four_layers(), [&](const auto& model, const char* recipe, const auto& shared) {
    const std::vector<json> one = {json::object(), kRecompute}, two = {kTensor, kPipeline};
    for (const json& sizes : rank.world == 1 ? one : two) {
      CAPTURE(sizes.dump());
      const json config = config_of(model, recipe, sizes);
      check_casts_stay(config, shared / std::to_string(std::hash<std::string>()(sizes.dump())), sequences_for(1));
      if (sizes != kPipeline) check_casts_are_counted(config, 1.0 / rank.world);
    }
  });
}

void experts_stay(const Rank& rank) {
  start_runtime(rank);
  const TemporaryDir dir;
  write_fp8_model(dir.path(), fp8_expert_model());
  const json config = config_of(dir.path(), "tensorwise", json::object());
  check_casts_stay(config, rank.argument, sequences_for(1));
  check_casts_are_counted(config, 1);
  runtime_test::runtime().stop();
}

void are_not_stale(const Rank& rank) {
  with_recipes(rank, four_layers(), [&](const auto& model, const char* recipe, const auto& shared) {
    StaleCasts(config_of(model, recipe, rank.world == 2 ? kTensor : json::object()), shared / "whole", sequences_for(1))
        .run();
    if (rank.world == 1) return;
    const json shards = {
        {"distributed_data_parallel_config", {{"data_parallel_sharding_strategy", "optim_grads_params"}}}};
    StaleCasts(config_of(model, recipe, shards), shared / "shards", sequences_for(2)).run();
  });
}

const bool registered = add_scenarios({{"fp8_casts_stay", stay},
                                       {"fp8_casts_of_experts_stay", experts_stay},
                                       {"fp8_casts_are_not_stale", are_not_stale}});

}  // namespace

TEST_CASE("FP8 casts that stay change no bit, on one rank and under tensor and pipeline parallelism") {
  run_with_recipes("fp8_casts_stay");
}

TEST_CASE("FP8 casts of experts that stay change no bit") {
  const TemporaryDir shared;
  rank_process::run("fp8_casts_of_experts_stay", 1, shared.path().string());
}

TEST_CASE("no FP8 cast outlives its weights, whole or in shards") { run_with_recipes("fp8_casts_are_not_stale"); }
