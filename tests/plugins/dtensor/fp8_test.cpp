// FP8 linears under FSDP, with and without tensor parallelism.
#include "tests/plugins/backend/fp8.hpp"
#include "tests/plugins/backend/fixed_order.hpp"
#include "tests/plugins/backend/scenarios.hpp"

using namespace backend_test;
using rank_process::Rank;

namespace {

const auto plain = [](const std::filesystem::path& dir, const std::string& precision, const json& fp8) {
  json config = policy(dir, precision);
  config["dtensor_cfg"]["fp8_cfg"] = fp8;
  return config;
};

void trains(const Rank& rank) {
  start_runtime(rank);
  const auto two = [](const auto& dir, const std::string& precision, const json& fp8) {
    json config = plain(dir, precision, fp8);
    config["dtensor_cfg"].update({{"tensor_parallel_size", 2}, {"sequence_parallel", true}});
    return config;
  };
  for (const char* recipe : {"tensorwise", "blockwise"}) {
    check_fp8_trains(plain, recipe);
    if (rank.world == 2) check_fp8_trains(two, recipe);
  }
  runtime_test::runtime().stop();
}

// Running a block again gives what its first run gave, bit for bit.
void runs_again(const Rank& rank) {
  const FixedOrder order;
  start_runtime(rank);
  const TemporaryDir dir;
  write_fp8_model(dir.path());
  Weights grads[2];
  for (const bool again : {false, true}) {
    json config = policy(dir.path(), "bfloat16", /*checkpointing=*/again);
    config["dtensor_cfg"]["fp8_cfg"] = fp8_keys("hybrid");
    Instance backend(config);
    auto batches = backend.batches(make_sequences(9, 5), {2, false, false});
    backend.train(batches, kFp8Normalizer, kFp8Temperature);
    grads[again] = backend.weights(HEXAD_WEIGHTS_GRADIENTS);
  }
  CHECK(same(grads[1], grads[0]));
  runtime_test::runtime().stop();
}

const bool registered = add_scenarios({{"fp8_trains", trains}, {"fp8_runs_again", runs_again}});

}  // namespace

TEST_CASE("FP8 trains near bf16 and fp32 on one and two ranks") {
  for (int world : {1, 2}) rank_process::run("fp8_trains", world);
}

TEST_CASE("FP8 gradients with and without activation checkpointing agree") { rank_process::run("fp8_runs_again", 2); }

TEST_CASE("FP8 log-probs repeat, and gradients that are not finite skip the step") {
  one_rank();
  for (const char* recipe : {"tensorwise", "blockwise"}) check_fp8_passes(plain, recipe);
}

TEST_CASE("each FP8 recipe has log-probs of its own") {
  one_rank();
  check_fp8_recipes(plain);
}

TEST_CASE("FP8 keys that are wrong or not available are refused") {
  one_rank();
  check_fp8_errors(plain, "dtensor_cfg");
}
