// Generation on ranks of its own: the run is the one that generates where it trains, and the weights arrive bit for
// bit.
#include <doctest/doctest.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include "tests/run/run_steps.hpp"

using first_party::both;
using first_party::source;
using toy::TempDir;

namespace {

using Json = nlohmann::json;
using Overrides = std::vector<std::string>;

constexpr int kSteps = 3;

Overrides apart(int ranks, int generators) {
  return {fmt::format("cluster.gpus_per_node={}", ranks), "++policy.generation.colocated.enabled=false",
          fmt::format("++policy.generation.colocated.resources.gpus_per_node={}", generators)};
}

toy::Ended train(const TempDir& dir, const Overrides& overrides) {
  const Overrides steps = {fmt::format("grpo.max_num_steps={}", kSteps)};
  return toy::run(first_party::train(source() + "/configs/quickstart.yaml", dir,
                                     both(both(first_party::training_alone(), steps), overrides)),
                  "", 600);
}

// The metrics of every step, and beside them the tokens of its samples.
std::vector<Json> trained(const Overrides& overrides) {
  const TempDir dir;
  const toy::Ended run = train(dir, overrides);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  const std::vector<Json> steps = first_party::steps_of(dir);
  REQUIRE(steps.size() == kSteps);
  return steps;
}

void check_same(const std::vector<Json>& got, const std::vector<Json>& want) {
  for (size_t step = 0; step < kSteps; ++step) {
    CAPTURE(step);
    CHECK(got[step].at("samples") == want[step].at("samples"));
    CHECK(got[step].at("train/reward") == want[step].at("train/reward"));
    CHECK(std::abs(got[step].at("train/loss").get<double>() - want[step].at("train/loss").get<double>()) <= 1e-5);
    CHECK(got[step].at("train/token_mult_prob_error").get<double>() < 1.00001);
  }
}

const Overrides kMegatron = {"policy.megatron_cfg.enabled=true", "++policy.megatron_cfg.tensor_model_parallel_size=2"};

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("dtensor: generation apart draws and trains as generation colocated does") {
  const std::vector<Json> want = trained({"cluster.gpus_per_node=2"});
  CHECK(want[0].at("samples") != want[1].at("samples"));
  for (const auto& [ranks, generators] : {std::pair(2, 1), {3, 1}, {4, 2}}) {
    CAPTURE(ranks);
    check_same(trained(apart(ranks, generators)), want);
  }
  check_same(trained(both(apart(4, 2), {"++policy.generation.native_cfg.tensor_parallel_size=2"})), want);
}

TEST_CASE("megatron: generation apart draws and trains as generation colocated does") {
  const std::vector<Json> want = trained(both(kMegatron, {"cluster.gpus_per_node=2"}));
  check_same(trained(both(kMegatron, apart(3, 1))), want);
  const Overrides stages = {"policy.megatron_cfg.enabled=true", "++policy.megatron_cfg.pipeline_model_parallel_size=2"};
  check_same(trained(both(stages, apart(4, 2))), want);
}

TEST_CASE("generation apart is refused where there is one worker, and where ranks do not suffice") {
  const TempDir dir;
  toy::Ended run = train(dir, both(apart(2, 1), {"--in-process"}));
  CHECK(run.code == 2);
  CHECK_MESSAGE(run.err.find("--in-process has one worker") != std::string::npos, run.err);
  run = train(dir, apart(2, 2));
  CHECK(run.code == 2);
  CHECK_MESSAGE(run.err.find("at least one must be left to train; nearest: 1") != std::string::npos, run.err);
}

TEST_SUITE_END();
