// Ctrl-C and SIGTERM: what a run still does, what it says, and what it leaves.
#include <doctest/doctest.h>

#include "tests/support/toy/train.hpp"

using namespace toy::names;

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("Ctrl-C finishes the step and saves; the resumed run equals the undisturbed one bit for bit") {
  const TempDir undisturbed, interrupted;
  CHECK(toy::run(train(undisturbed)).code == 0);
  {
    Program program(train(interrupted, {"+policy.plugin_config.fault=train@0:slow", "checkpointing.save_period=100"}));
    REQUIRE(toy::eventually([&] { return contains(program.err(), "step 1/6"); }));
    const auto workers = toy::workers_of(program.pid());
    CHECK(workers.size() == 1);
    ::kill(program.pid(), SIGINT);
    const Ended ended = program.wait();
    INFO(ended.err);
    CHECK(ended.code == 130);
    CHECK(contains(ended.err, "interrupted: saving what is trained; press again to stop at once"));
    CHECK(contains(ended.out, "interrupted and saved after step "));
    CHECK(all_gone(workers));
  }
  const Ended resumed = toy::run(train(interrupted));
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(contains(resumed.err, fmt::format("resumed from {}/checkpoints/step_", interrupted.path().string())));
  CHECK(toy::fs::exists(interrupted / "logs/exp_002/report.html"));
  CHECK(weights(interrupted, 6) == weights(undisturbed, 6));
  CHECK(weights(interrupted, 6) != "");
}

TEST_CASE("an interrupted run without checkpoints does not claim to be saved") {
  const TempDir dir;
  Program program(train(dir, {"checkpointing.enabled=false", "+policy.plugin_config.fault=train@0:slow"}));
  REQUIRE(toy::eventually([&] { return contains(program.err(), "step 1/6"); }));
  ::kill(program.pid(), SIGINT);
  const Ended ended = program.wait();
  CHECK(ended.code == 130);
  CHECK_MESSAGE(contains(ended.out, "interrupted, not saved (checkpointing.enabled is false) after step "), ended.out);
}

TEST_CASE("a second Ctrl-C stops at once and leaves no process") {
  const TempDir dir;
  Program program(train(dir, {"+policy.plugin_config.fault=train@2:hang"}));
  REQUIRE(toy::eventually([&] { return contains(program.err(), "step 1/6"); }));
  const auto workers = toy::workers_of(program.pid());
  ::kill(program.pid(), SIGINT);
  REQUIRE(toy::eventually([&] { return contains(program.err(), "interrupted: saving"); }));
  ::kill(program.pid(), SIGINT);
  CHECK(program.wait().code == 130);
  CHECK(workers.size() == 1);
  CHECK(toy::eventually([&] { return all_gone(workers); }));
}

TEST_CASE(
    "SIGINT and SIGTERM at once, as from a terminal and a launcher, save and stop; a second later they end at once") {
  SUBCASE("at once") {
    const TempDir dir;
    Program program(train(dir, {"+policy.plugin_config.fault=train@0:slow", "checkpointing.save_period=100"}));
    REQUIRE(toy::eventually([&] { return contains(program.err(), "step 1/6"); }));
    for (const int signal : {SIGINT, SIGTERM, SIGTERM}) ::kill(program.pid(), signal);
    const Ended ended = program.wait();
    INFO(ended.err);
    CHECK(ended.code == 130);
    CHECK(contains(ended.out, "interrupted and saved after step "));
  }
  SUBCASE("a second later") {
    const TempDir dir;
    Program program(train(dir, {"+policy.plugin_config.fault=train@2:hang"}));
    REQUIRE(toy::eventually([&] { return contains(program.err(), "step 1/6"); }));
    std::this_thread::sleep_for(std::chrono::seconds(1));  // now step 2 trains: it would be given up before
    ::kill(program.pid(), SIGTERM);
    REQUIRE(toy::eventually([&] { return contains(program.err(), "interrupted: saving"); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    ::kill(program.pid(), SIGINT);
    const Ended ended = program.wait();
    CHECK(ended.code == 130);
    CHECK(ended.out.empty());
  }
}

TEST_SUITE_END();
