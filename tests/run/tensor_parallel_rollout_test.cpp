// Rollouts by replicas of several ranks, through the whole engine: refit from shards of another layout, and training on
// what they draw.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/run/run_steps.hpp"

using first_party::both;
using first_party::source;
using toy::TempDir;

namespace {

using Json = nlohmann::json;

constexpr int kSteps = 3;
const std::string kRanks = "++policy.generation.native_cfg.tensor_parallel_size=";

std::vector<std::string> train(const TempDir& dir, const std::vector<std::string>& overrides) {
  const std::vector<std::string> run = {fmt::format("grpo.max_num_steps={}", kSteps), "cluster.gpus_per_node=4"};
  return first_party::train(source() + "/configs/quickstart.yaml", dir,
                            both(both(first_party::training_alone(), run), overrides));
}

// The metrics of every step, and beside them the tokens of its samples.
std::vector<Json> trained(const std::vector<std::string>& overrides) {
  const TempDir dir;
  const toy::Ended run = toy::run(train(dir, overrides), "", 600);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  const std::vector<Json> steps = first_party::steps_of(dir);
  REQUIRE(steps.size() == kSteps);
  return steps;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("two replicas of two ranks draw what four of one do, before and after refits, and training takes it") {
  const std::vector<std::string> megatron = {"policy.megatron_cfg.enabled=true",
                                             "++policy.megatron_cfg.tensor_model_parallel_size=2"};
  for (const auto& backend : {std::vector<std::string>(), megatron}) {
    const std::vector<Json> alone = trained(both(backend, {kRanks + "1"})),
                            shared = trained(both(backend, {kRanks + "2"}));
    CHECK(shared[0].at("samples").size() > 8);
    for (size_t step = 0; step < kSteps; ++step) {
      CAPTURE(step);
      CHECK(shared[step].at("train/token_mult_prob_error").get<double>() < 1.00001);
      CHECK(shared[step].at("samples") == alone[step].at("samples"));
      CHECK(shared[step].at("train/reward") == alone[step].at("train/reward"));
    }
    CHECK(shared[0].at("samples") != shared[1].at("samples"));
  }
}

TEST_CASE("replicas that the ranks of the run, or the model, cannot make are refused before anything starts") {
  const TempDir dir;
  const toy::Ended ranks = toy::run(train(dir, {kRanks + "3"}));
  CHECK(ranks.code == 2);
  CHECK_MESSAGE(
      ranks.err.find("policy.generation.native_cfg.tensor_parallel_size: tensor_parallel_size 3 does not divide "
                     "the 4 ranks of a node") != std::string::npos,
      ranks.err);
}

TEST_SUITE_END();
