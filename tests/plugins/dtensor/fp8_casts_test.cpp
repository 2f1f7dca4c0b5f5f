// FP8 casts that stay under FSDP, where full weights come and go beside them, or stay too.
#include "tests/plugins/backend/fp8_casts.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

json config_of(const std::filesystem::path& dir, const char* recipe, bool reshard, bool checkpointing) {
  json config = policy(dir, "bfloat16", checkpointing, reshard);
  config["dtensor_cfg"]["fp8_cfg"] = fp8_keys("hybrid", recipe);
  return config;
}

void stay(const Rank& rank) {
  with_recipes(rank, fp8_model(), [&](const auto& model, const char* recipe, const auto& shared) {
    for (const bool again : {false, true}) {
      const json config = config_of(model, recipe, /*reshard=*/again, /*checkpointing=*/again);
      check_casts_stay(config, shared / std::to_string(again), sequences_for(rank.world));
      check_casts_are_counted(config, 1);
    }
    if (rank.world == 1) return;
    json parallel = config_of(model, recipe, true, false);
    parallel["dtensor_cfg"].update({{"tensor_parallel_size", 2}, {"sequence_parallel", true}});
    check_casts_stay(parallel, shared / "parallel", sequences_for(1));
    check_casts_are_counted(parallel, 0.5);
  });
}

void are_not_stale(const Rank& rank) {
  with_recipes(rank, fp8_model(), [&](const auto& model, const char* recipe, const auto& shared) {
    for (const bool reshard : {false, true})
      StaleCasts(config_of(model, recipe, reshard, false), shared / std::to_string(reshard), sequences_for(rank.world))
          .run();
  });
}

const bool registered = add_scenarios({{"fp8_casts_stay", stay}, {"fp8_casts_are_not_stale", are_not_stale}});

}  // namespace

TEST_CASE("FP8 casts that stay change no bit, on one and two ranks") { run_with_recipes("fp8_casts_stay"); }

TEST_CASE("no FP8 cast outlives its weights, on one and two ranks") { run_with_recipes("fp8_casts_are_not_stale"); }
