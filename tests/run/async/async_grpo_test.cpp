// Asynchronous GRPO through the first-party plugins: equal to the synchronous run where it must be, learning where it
// may lag, and never short of a sample.
#include "tests/run/async/async_run.hpp"

using namespace async_run;
using first_party::lines_of;

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("with samples of age 0 it is the synchronous run") {
  const std::vector<Json> want = train(alone({steps(4), "grpo.async_grpo.enabled=false"}));
  const std::vector<Json> got = train(alone({steps(4), age(0)}));
  REQUIRE(got.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    CHECK(got[i].at("samples") == want[i].at("samples"));
    CHECK(got[i].at("train/loss") == want[i].at("train/loss"));
    CHECK(got[i].at("train/grad_norm") == want[i].at("train/grad_norm"));
    CHECK(got[i].at("train/avg_trajectory_age") == 0);
  }
}

TEST_CASE("samples of several turns: with age 0 the synchronous run too") {
  const TempDir dir;
  const Overrides run = both(talking(dir), {steps(3)});
  const std::vector<Json> want = train(alone(both(run, {"grpo.async_grpo.enabled=false"})));
  const std::vector<Json> got = train(alone(both(run, {age(0)})));
  REQUIRE(got.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(got[i].at("samples") == want[i].at("samples"));
    for (const char* metric : {"train/loss", "train/grad_norm", "train/reward", "train/total_turns",
                               "train/mean_env_tokens_per_sample", "train/token_mult_prob_error"})
      CHECK_MESSAGE(got[i].at(metric) == want[i].at(metric), metric);
    CHECK(got[i].at("train/max_turns_per_sample") == 3);
  }
}

TEST_CASE("samples of several turns may be old, change weights between turns, and are all accounted for") {
  const TempDir dir, logs;
  const Overrides few = both(small_steps(8), {steps(8), age(2)});
  const toy::Ended run = toy::run(arguments(logs, alone(both(talking(dir, {.seconds = 0.02}), few))), "", 600);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK(contains(run.out + run.err, "groups: 64 started, 64 trained, 0 dropped"));
  const std::vector<Json> all = steps_of(logs);
  REQUIRE(all.size() == 8);
  double crossing = 0;
  for (const Json& step : all) {
    CHECK(step.at("samples").size() == 8 * 4);
    CHECK(step.at("train/avg_turns_per_sample").get<double>() > 1);
    CHECK(step.at("train/avg_token_age").get<double>() <= step.at("train/avg_trajectory_age").get<double>());
    crossing += step.at("train/updated_in_flight_rate").get<double>();
  }
  CHECK(all.back().at("train/avg_trajectory_age") == 2);
  CHECK(crossing > 0);
}

TEST_CASE("the quickstart learns from samples that are one and two steps old") {
  for (const int old : {1, 2}) {
    CAPTURE(old);
    const TempDir dir;
    const toy::Ended run = toy::run(arguments(dir, {age(old)}), "", 600);
    INFO(run.out << run.err);
    REQUIRE(run.code == 0);
    CHECK(contains(run.out + run.err, "groups: 2560 started, 2560 trained, 0 dropped"));
    std::vector<double> accuracy;
    for (const Json& line : lines_of(dir / "logs/exp_001/metrics.jsonl"))
      if (line.contains("validation/accuracy")) accuracy.push_back(line.at("validation/accuracy"));
    REQUIRE(accuracy.size() >= 2);
    CHECK(accuracy.front() < 0.2);
    CHECK(accuracy.back() >= 0.9);
    const std::vector<Json> all = steps_of(dir);
    CHECK(all.front().at("train/avg_trajectory_age") == 0);
    CHECK(all.back().at("train/avg_trajectory_age") == old);
    CHECK(all.back().contains("timing/train/exposed_generation"));
    CHECK(all.back().contains("train/buffer_size"));
  }
}

TEST_CASE("two generating replicas share the groups") {
  const std::vector<Json> got = train(alone(
      both(kSlow, {steps(4), "cluster.gpus_per_node=3", "policy.generation.colocated.resources.gpus_per_node=2"})));
  REQUIRE(got.size() == 4);
  CHECK(got.back().at("train/groups_dropped") == 0);
}

TEST_CASE("a run that is interrupted says what became of every group") {
  const TempDir dir;
  toy::Program program(arguments(dir, alone({age(2)})));
  REQUIRE_MESSAGE(toy::eventually([&] { return has_begun(dir); }), program.err());
  ::kill(program.pid(), SIGINT);
  const toy::Ended run = program.wait();
  const std::string text = run.out + run.err;
  INFO(text);
  const size_t at = text.find("groups: ");
  REQUIRE(at != std::string::npos);
  int started = 0, trained = 0, dropped = 0;
  REQUIRE(std::sscanf(text.c_str() + at, "groups: %d started, %d trained, %d dropped", &started, &trained, &dropped) ==
          3);
  CHECK(trained < started);
  CHECK(started == trained + dropped);
}

TEST_CASE("a resumed run trains on every prompt that the uninterrupted one does") {
  const TempDir whole, parts;
  const Overrides run = {"++grpo.val_at_start=false", "++grpo.val_at_end=false", "++grpo.val_period=0", age(2),
                         "checkpointing.save_period=3"};
  REQUIRE(toy::run(arguments(whole, both(run, {steps(6)})), "", 600).code == 0);
  REQUIRE(toy::run(arguments(parts, both(run, {steps(3)})), "", 600).code == 0);
  const toy::Ended resumed = toy::run(arguments(parts, both(run, {steps(6)})), "", 600);
  INFO(resumed.out << resumed.err);
  REQUIRE(resumed.code == 0);
  CHECK(contains(resumed.out + resumed.err, "what was being drawn when step 3 was saved is drawn again"));
  const std::vector<Json> want = steps_of(whole), got = steps_of(parts, "exp_002");
  REQUIRE(want.size() == 6);
  REQUIRE(got.size() == 3);
  for (size_t i = 0; i < 3; ++i) CHECK(got[i].at("prompts") == want[3 + i].at("prompts"));
}

TEST_SUITE_END();
