// A run that loses its controller, a worker, room on the disk or a finite gradient.
#include <doctest/doctest.h>

#include "tests/support/report.hpp"
#include "tests/support/said.hpp"
#include "tests/support/toy/train.hpp"

using namespace toy::names;

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("kill -9 of the controller in the middle of a save loses only the steps since the last one") {
  const TempDir undisturbed, killed;
  CHECK(toy::run(train(undisturbed)).code == 0);
  {
    Program program(train(killed, {"+policy.plugin_config.fault=save@4:hang"}));
    REQUIRE(toy::eventually([&] { return toy::fs::exists(killed / "checkpoints/tmp_step_4/policy/weights/toy.bin"); }));
    const auto workers = toy::workers_of(program.pid());
    ::kill(program.pid(), SIGKILL);
    CHECK(program.wait().code == -SIGKILL);
    CHECK(workers.size() == 1);
    CHECK(toy::eventually([&] { return all_gone(workers); }));
  }
  CHECK(toy::fs::exists(killed / "checkpoints/tmp_step_4"));
  const Ended resumed = toy::run(train(killed));
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(contains(resumed.err, "checkpoints/step_2 (step 2)"));
  CHECK_FALSE(toy::fs::exists(killed / "checkpoints/tmp_step_4"));
  CHECK(weights(killed, 6) == weights(undisturbed, 6));
}

TEST_CASE("a worker that is lost ends the run with 4; max_restarts goes on from the newest checkpoint") {
  SUBCASE("it dies in a call") {
    const TempDir dir;
    const Ended run = toy::run(train(dir, {"+policy.plugin_config.fault=train@3:kill"}));
    CHECK(run.code == 4);
    CHECK_MESSAGE(contains(run.err, "hexad: rank 0 on "), run.err);
    CHECK(contains(run.err, "ended: killed by signal 9 (Killed); last call 'train', "));
    CHECK(contains(run.err, "logs/exp_001/worker-0.log"));
  }
  SUBCASE("it crashes while it generates") {
    const TempDir dir;
    const Ended run = toy::run(train(dir, {"+policy.generation.plugin_config.fault=generate@2:segv"}));
    CHECK(run.code == 4);
    CHECK_MESSAGE(contains(run.err, "ended: killed by signal 11 (Segmentation fault); last call 'generate', "),
                  run.err);
    CHECK(contains(run.err, "hexad: crashed in generator 'toy_generator' 1.2.0 (/"));
    CHECK(contains(run.err, "libtoy_generator.so, sha256 "));
    CHECK(contains(run.err, "): submit at step 2"));
  }
  SUBCASE("it hangs") {
    const TempDir dir;
    const Ended run =
        toy::run(train(dir, {"+policy.plugin_config.fault=forward@2:hang", "cluster.worker_timeout_s=2"}));
    CHECK(run.code == 4);
    CHECK(run.seconds < 60);
    CHECK_MESSAGE(contains(run.err, "did not answer within 2 s"), run.err);
    CHECK(contains(run.err, "last call 'forward'"));
  }
  SUBCASE("and every restart ends the same way") {
    const TempDir dir;
    const Ended run = toy::run(train(dir, {"+policy.plugin_config.fault=train@3:kill", "cluster.max_restarts=1"}));
    CHECK(run.code == 4);
    CHECK(contains(run.err, "restarting from the newest checkpoint (1 of at most 1)"));
    CHECK(contains(run.err, "(step 2)"));
  }
  SUBCASE("from the beginning where nothing was saved") {
    const TempDir dir;
    const Ended run = toy::run(train(dir, {"+policy.plugin_config.fault=train@1:kill", "cluster.max_restarts=1"}));
    CHECK(run.code == 4);
    SAYS(run.err, "\nrestarting from the beginning (1 of at most 1)\n");
  }
  SUBCASE("but not after Ctrl-C") {
    const TempDir dir;
    Program program(train(dir, {"+policy.plugin_config.fault=train@2:hang", "cluster.max_restarts=2"}));
    REQUIRE(toy::eventually([&] { return contains(program.err(), "step 1/6"); }));
    std::this_thread::sleep_for(std::chrono::seconds(1));  // now step 2 trains: it would be given up before
    ::kill(program.pid(), SIGINT);
    REQUIRE(toy::eventually([&] { return contains(program.err(), "interrupted: saving"); }));
    for (const pid_t worker : toy::workers_of(program.pid())) ::kill(worker, SIGKILL);
    const Ended run = program.wait();
    CHECK(run.code == 4);
    SAYS(run.err, "interrupted: not restarting\nhexad: rank 0 on ");
    CHECK_FALSE(contains(run.err, "restarting from"));
    CHECK_FALSE(toy::fs::exists(dir / "logs/exp_002"));
  }
  SUBCASE("and the restart succeeds") {
    const TempDir undisturbed, dir;
    CHECK(toy::run(train(undisturbed)).code == 0);
    Program program(train(dir, {"+policy.plugin_config.fault=train@0:slow", "cluster.max_restarts=1"}));
    REQUIRE(toy::eventually([&] { return contains(program.err(), "step 3/6"); }));
    for (const pid_t worker : toy::workers_of(program.pid())) ::kill(worker, SIGKILL);
    const Ended run = program.wait();
    INFO(run.err);
    CHECK(run.code == 0);
    CHECK(contains(run.err, "restarting from the newest checkpoint (1 of at most 1)"));
    CHECK(weights(dir, 6) == weights(undisturbed, 6));
  }
}

TEST_CASE("a log disk that fills up ends no run: what was trained is saved, and the log is whole when there is room") {
  std::string mount;
  for (const char* tried : {"-m", "-rm"})
    if (mount.empty() &&
        std::system(fmt::format("unshare {} mount -t tmpfs none /mnt 2> /dev/null", tried).c_str()) == 0)
      mount = tried;
  if (mount.empty()) {
    test_report::skipped("a mount of its own is not allowed");
    return;
  }
  const TempDir dir;
  toy::fs::create_directories(dir / "logs");
  toy::fs::create_directories(dir / "kept");
  const auto on_full_disk = [&](const std::string& meanwhile, Arguments more) {
    const std::string script =
        "cd " + dir.path().string() +
        "; mount -t tmpfs -o size=4m none logs || exit 125; \"$@\" & run=$!; soon() { until [ $1 $2 ]; do sleep 0.05; "
        "done; }; soon -s logs/exp_001/metrics.jsonl; dd if=/dev/zero of=logs/filling bs=4k 2> /dev/null; " +
        meanwhile + "; wait $run; code=$?; cp logs/exp_001/* kept; exit $code";
    more.insert(more.end(), {"+policy.plugin_config.fault=train@0:slow", "grpo.max_num_steps=12"});
    return Program({"unshare", mount, "sh", "-c", script, "sh", toy::hexad().string()}, train(dir, more), "").wait();
  };
  SUBCASE("there is room again") {
    const Ended run = on_full_disk("soon -e checkpoints/step_6; rm logs/filling", {});
    INFO(run.err);
    CHECK(run.code == 0);
    SAYS(run.err, "cannot write ");
    SAYS(run.err, "No space left on device. The run goes on and every step tries again");
    SAYS(run.err, "there is room again in ");
    const auto steps = lines(dir / "kept/metrics.jsonl");
    REQUIRE(steps.size() == 12);
    for (size_t i = 0; i < 12; ++i) CHECK(steps[i].at("step") == i + 1);
    for (int step = 1; step <= 12; ++step)
      CHECK(lines(dir / fmt::format("kept/train_data_step{}.jsonl", step)).size() == 64);
  }
  SUBCASE("there is none") {
    const Ended run = on_full_disk("true", {"checkpointing.save_period=1000"});
    INFO(run.err);
    CHECK(weights(dir, 12) != "");
    SAYS(run.err, "step 12/12  reward ");
    SAYS(run.err, " lacks the metrics of steps ");
    CHECK(run.code == 0);
  }
}

TEST_CASE("a step whose gradient is not finite is skipped and counted; a series of them ends the run") {
  const TempDir dir;
  const Ended one = toy::run(train(dir, {"+policy.plugin_config.fault=train@3:nan"}));
  INFO(one.err);
  CHECK(one.code == 0);
  CHECK(contains(one.err,
                 "step 3: loss or gradient was not finite (grad_norm nan); the update was skipped (1 of at most "));
  const auto steps = lines(dir / "logs/exp_001/metrics.jsonl");
  REQUIRE(steps.size() == 6);
  CHECK(steps[1].at("train/skipped_steps") == 0);
  CHECK(steps[2].at("train/skipped_steps") == 1);
  CHECK(steps[2].at("train/grad_norm").is_null());
  CHECK(steps[3].at("train/skipped_steps") == 0);

  const TempDir always;
  const Ended run = toy::run(train(always, {"+policy.plugin_config.fault=train@0:nan", "grpo.max_nonfinite_steps=3"}));
  INFO(run.err);
  CHECK(run.code == 2);
  CHECK(contains(run.err, "hexad: 3 steps in a row had a loss or gradient that was not finite; stopping"));
  CHECK(lines(always / "logs/exp_001/metrics.jsonl").size() == 3);
  CHECK(toy::fs::exists(always / "logs/exp_001/report.html"));
}

TEST_SUITE_END();
