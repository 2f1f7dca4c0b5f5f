// Asynchronous GRPO whose weights change while requests run.
#include "tests/run/async/async_run.hpp"

using namespace async_run;

namespace {

// Step 3 is being drawn, and what comes after it waits, when the generators stop; they go on once step 1 is trained.
// With and without a cache that is computed again.
void check_updates_in_flight(const Overrides& overrides) {
  const int validation = 0;
  for (const std::string recompute : {"false", "true"}) {
    CAPTURE(recompute);
    HeldRun run({.held = "step in (0, 3)"},
                both({"grpo.max_rollout_turns=1", "++grpo.val_at_start=true", "grpo.max_val_samples=4", steps(8),
                      age(7), "++grpo.async_grpo.recompute_kv_cache_after_weight_updates=" + recompute},
                     overrides));
    run.wait_for_hold(validation);
    run.signal(/*rank=*/1, SIGSTOP);
    run.go_on(validation);
    run.wait_for_hold_slowed(3, /*rank=*/1);
    run.go_on(3);
    run.wait_for_line("step 1/8");
    run.signal(1, SIGCONT);
    const std::vector<Json> got = run.end();
    REQUIRE(got.size() == 8);
    double crossing = 0;
    for (const Json& step : got) {
      crossing += step.at("train/updated_in_flight_rate").get<double>();
      CHECK(step.at("train/avg_trajectory_age").get<double>() <= 7);
      // Tokens drawn after an update are younger than the group that they belong to.
      CHECK(step.at("train/avg_token_age").get<double>() <= step.at("train/avg_trajectory_age").get<double>());
    }
    CHECK(crossing > 0);
    CHECK(got.back().at("train/groups_dropped") == 0);
  }
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("without updates in flight all turns of a sample are of one version") {
  const TempDir dir;
  const Overrides run = {steps(8), age(7), "grpo.async_grpo.in_flight_weight_updates=false"};
  for (const Json& step : train(alone(both(talking(dir), run)))) CHECK(step.at("train/updated_in_flight_rate") == 0);
}

TEST_CASE("an update in flight keeps what was drawn, and says which weights drew each token") {
  check_updates_in_flight(uneven(8, 16));
}

TEST_CASE("without updates in flight every sample is of one version") {
  const Overrides run = {steps(8), age(7), "grpo.async_grpo.in_flight_weight_updates=false"};
  for (const Overrides& validation : {Overrides{}, Overrides{"++grpo.val_period=1"}})
    for (const Json& step : train(both(alone(both(uneven(8, 16), run)), validation)))
      CHECK(step.at("train/updated_in_flight_rate") == 0);
}

// Of a replica's ranks one may be inside a pass while the other has read its next command.
TEST_CASE("a replica of two ranks takes weights and requests while it draws") {
  const Overrides by_two = {"cluster.gpus_per_node=3", "policy.generation.colocated.resources.gpus_per_node=2",
                            "++policy.generation.native_cfg.tensor_parallel_size=2"};
  const std::vector<Json> want = train(alone({steps(3), "grpo.async_grpo.enabled=false"}));
  const std::vector<Json> same = train(alone(both(by_two, {steps(3), age(0)})));
  REQUIRE(same.size() == 3);
  for (size_t i = 0; i < 3; ++i) CHECK(same[i].at("samples") == want[i].at("samples"));
  check_updates_in_flight(both(both(uneven(2, 4), by_two), {"++grpo.val_period=3"}));
}

TEST_SUITE_END();
