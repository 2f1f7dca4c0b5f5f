// Asynchronous GRPO whose generators are slow, fail or die: no group is missing, and a run that cannot go on says why.
#include "tests/run/async/async_run.hpp"

using namespace async_run;

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

// Rewards have deadlines of their own: the time of a group is that of its generation.
TEST_CASE("groups whose environment thinks are not given up") {
  HeldRun run({.held = "step == 1"}, both(small_steps(8), {steps(2), "++grpo.async_grpo.group_timeout_s=6"}));
  run.wait_for_hold(1);
  std::this_thread::sleep_for(std::chrono::seconds(7));
  run.go_on(1);
  const std::vector<Json> got = run.end();
  REQUIRE(got.size() == 2);
  CHECK(got.back().at("train/groups_dropped") == 0);
}

TEST_CASE(
    "a generator that stands still for a while: its groups are drawn again from their first turn, and none is "
    "missing") {
  HeldRun run({.held = "step == 2"}, both(small_steps(2), {steps(3), age(0), "++grpo.async_grpo.group_timeout_s=6"}));
  run.wait_for_hold(2);
  run.signal(/*rank=*/1, SIGSTOP);
  run.go_on(2);  // to the second turn
  run.wait_for_line("(grpo.async_grpo.group_timeout_s 6): given up, and drawn again");
  run.signal(1, SIGCONT);
  const std::vector<Json> all = run.end();
  REQUIRE(all.size() == 3);
  CHECK(all.back().at("train/groups_dropped").get<double>() >= 2);
  for (const Json& step : all) CHECK(step.at("samples").size() == 2 * 4);
}

// Training takes longer than the timeout: of the groups that ran meanwhile two have ended, and two stand still.
TEST_CASE("what ended while others trained is not given up with what did not") {
  HeldRun run({.ends_at_once = "step == 1 or group < 2", .held = "step < 3"},
              both(small_steps(4), {steps(4), "grpo.async_grpo.in_flight_weight_updates=false",
                                    "++policy.generation.native_cfg.max_num_seqs=1",  // in order of their steps
                                    "++grpo.async_grpo.group_timeout_s=6"}));
  run.wait_for_hold(1);
  run.signal(/*rank=*/0, SIGSTOP);
  run.go_on(1);
  run.wait_for_hold(2);
  run.signal(1, SIGSTOP);
  run.go_on(2);
  std::this_thread::sleep_for(std::chrono::seconds(7));
  run.signal(0, SIGCONT);
  run.wait_for_line("given up, and drawn again");
  run.signal(1, SIGCONT);
  const std::vector<Json> all = run.end();
  REQUIRE(all.size() == 4);
  CHECK(all.back().at("train/groups_dropped") == 2);
  for (const Json& step : all) CHECK(step.at("samples").size() == 4 * 4);
}

TEST_CASE("groups that are too slow again and again end the run, which says what to raise") {
  const TempDir dir;
  const toy::Ended run =
      toy::run(arguments(dir, alone(both(kSlow, {steps(3), age(0), "++grpo.async_grpo.group_timeout_s=0.01"}))));
  INFO(run.err);
  CHECK(run.code == 4);
  CHECK(contains(run.err, "was given up 4 times (overdue)"));
  CHECK(contains(run.err, "Raise grpo.async_grpo.group_timeout_s"));
}

TEST_CASE("failures of generation that are tolerated, and caches that are computed again, by how a run ends") {
  const auto ended = [](const std::string& fault, const std::string& key) {
    const TempDir dir;
    const Overrides toys = {fmt::format("++plugins.paths=[{}]", toy::plugins().string()),
                            "policy.backend=toy_backend",
                            "policy.generation.backend=toy_generator",
                            "policy.optimizer={name: torch.optim.SGD, kwargs: {lr: 40.0}}",
                            fmt::format("++policy.generation.plugin_config={{fault: '{}'}}", fault),
                            "++grpo.async_grpo." + key};
    return toy::run(arguments(dir, alone(both(both(small_steps(2), {steps(3)}), toys))));
  };
  const auto check_error = [](const toy::Ended& run, const std::string& text) {
    CHECK(run.code != 0);
    CHECK_MESSAGE(contains(run.err, text), run.err);
  };
  check_error(ended("complete@0:error", "max_generation_failures=0"), "generation failed 1 time in a row");
  check_error(ended("complete@0:error", "max_generation_failures=2"), "generation failed 3 times in a row");

  // It sleeps and wakes, which throws away what a generator holds of the requests that run.
  const std::string sleeps = "sleep@0:error", recompute = "recompute_kv_cache_after_weight_updates=";
  const toy::Ended kept = ended(sleeps, recompute + "false");
  CHECK_MESSAGE(kept.code == 0, kept.err);
  check_error(ended(sleeps, recompute + "true"), "the toy was told to fail");
}

TEST_CASE("a generator that is killed ends the run in time and by name") {
  const TempDir dir;
  toy::Program program(arguments(dir, alone(both(kSlow, {steps(200)}))));
  REQUIRE_MESSAGE(toy::eventually([&] { return has_begun(dir); }), program.err());
  const pid_t generator = worker_of(program.pid(), 1);
  REQUIRE(generator > 0);
  const auto began = std::chrono::steady_clock::now();
  ::kill(generator, SIGKILL);
  const toy::Ended run = program.wait();
  INFO(run.err);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(45));  // well before its silence counts
  CHECK(run.code == 4);
  CHECK(contains(run.err, "rank 1 on "));
  CHECK(contains(run.err, fmt::format("(pid {}) ended: killed by signal 9", generator)));
}

TEST_SUITE_END();
