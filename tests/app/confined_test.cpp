// Whole runs whose loss and generator have processes of their own.
#include <doctest/doctest.h>

#include "tests/support/toy/train.hpp"

using namespace toy::names;

namespace {

constexpr const char* kBoth = "++plugins.own_process=[ppo_clip_c, toy_generator]";

// What a run measured, without what clocks say.
std::vector<Json> metrics(const TempDir& dir) {
  std::vector<Json> found;
  for (const Json& read : toy::lines(dir / "logs/exp_001/metrics.jsonl")) {
    Json numbers = Json::object();
    for (const auto& [name, value] : read.items()) {
      const bool of_clock = contains(name, "timing") || contains(name, "time") || contains(name, "per_sec") ||
                            contains(name, "performance") || contains(name, "memory");
      if (!of_clock) numbers[name] = value;
    }
    found.push_back(numbers);
  }
  return found;
}

// The `hexad plugin-process` children of a worker.
std::vector<pid_t> plugins_of(pid_t worker) {
  std::vector<pid_t> found;
  for (const auto& entry : toy::fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const toy::Process process = toy::process(std::stoi(name));
    if (process.parent == worker && contains(process.command, "hexad plugin-process")) found.push_back(std::stoi(name));
  }
  return found;
}

std::vector<pid_t> plugins_of_run(pid_t controller) {
  std::vector<pid_t> found;
  for (const pid_t worker : toy::workers_of(controller)) {
    for (const pid_t pid : plugins_of(worker)) found.push_back(pid);
  }
  return found;
}

// A run that takes long enough to be looked at, and its two plugins' processes.
struct SlowRun {
  explicit SlowRun(const TempDir& dir)
      : program(train(dir, {kBoth, "+policy.plugin_config.fault=train@0:slow", "grpo.max_num_steps=1000"})) {
    REQUIRE(toy::eventually([&] { return contains(program.err(), "step 1/"); }));
    plugins = plugins_of_run(program.pid());
    REQUIRE(plugins.size() == 2);
  }
  Program program;
  std::vector<pid_t> plugins;
};

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a run with its loss and generator in processes of their own measures and learns the same") {
  const TempDir own, here;
  const Ended confined = toy::run(train(own, {kBoth}));
  INFO(confined.err);
  REQUIRE(confined.code == 0);
  REQUIRE(toy::run(train(here)).code == 0);
  const auto measured = metrics(own);
  REQUIRE(measured.size() == 6);
  CHECK(measured == metrics(here));
  CHECK(measured[0].contains("train/clip_frac"));
  CHECK(measured[0].contains("train/toy_requests"));
  for (const char* file : {"checkpoints/step_6/policy/weights/toy.bin"})
    CHECK(toy::read_text(own / file) == toy::read_text(here / file));
  CHECK(contains(toy::read_text(own / "logs/exp_001/worker-0.log"), "in its own process"));
  CHECK_FALSE(contains(toy::read_text(here / "logs/exp_001/worker-0.log"), "in its own process"));
}

TEST_CASE("in process of the controller too: --in-process keeps the plugins outside") {
  const TempDir dir;
  const Ended run = toy::run(train(dir, {kBoth, "--in-process", "grpo.max_num_steps=2"}));
  INFO(run.err);
  CHECK(run.code == 0);
}

TEST_CASE("a killed plugin ends the run with its name; the worker lives to say so") {
  const TempDir dir;
  SlowRun run(dir);
  for (const pid_t pid : run.plugins) {
    if (pid == run.plugins.front()) ::kill(pid, SIGKILL);
  }
  const Ended ended = run.program.wait();
  INFO(ended.err);
  CHECK(ended.code == 3);
  CHECK(contains(ended.err, "UNAVAILABLE: its own process (pid "));
  CHECK(contains(ended.err, "was killed by signal 9 (Killed) during "));
  CHECK(toy::eventually([&] { return all_gone(run.plugins); }));
}

TEST_CASE("plugins' processes end with the run, its worker and its controller, however they end") {
  for (const bool worker : {true, false}) {
    const TempDir dir;
    SlowRun run(dir);
    ::kill(worker ? toy::workers_of(run.program.pid()).at(0) : run.program.pid(), SIGKILL);
    run.program.wait();
    CHECK(toy::eventually([&] { return all_gone(run.plugins); }));
  }
  const TempDir dir;
  Program program(train(dir, {kBoth, "+policy.plugin_config.fault=train@0:slow"}));
  std::vector<pid_t> plugins;
  REQUIRE(toy::eventually([&] { return (plugins = plugins_of_run(program.pid())).size() == 2; }));
  CHECK(program.wait().code == 0);
  CHECK(toy::eventually([&] { return all_gone(plugins); }));
}

TEST_CASE("a backend and a name that the run does not have are refused before anything starts") {
  const TempDir dir;
  const Ended backend = toy::run(train(dir, {"++plugins.own_process=[toy_backend]"}));
  CHECK(backend.code == 2);
  CHECK_MESSAGE(contains(backend.err,
                         "plugins.own_process: 'toy_backend' is this run's backend, which already has the worker "
                         "process of its rank. Confine its other plugins instead: ppo_clip_c, toy_generator"),
                backend.err);
  const Ended unknown = toy::run(train(dir, {"++plugins.own_process=[ppo_clip_cc, gen]"}));
  CHECK(unknown.code == 2);
  CHECK_MESSAGE(contains(unknown.err,
                         "no plugin of this run is 'ppo_clip_cc', did you mean 'ppo_clip_c'? Its plugins "
                         "that can have a process of their own: ppo_clip_c, toy_generator"),
                unknown.err);
  CHECK_MESSAGE(contains(unknown.err, "no plugin of this run is 'gen'. Its plugins"), unknown.err);
}

TEST_CASE("plugin-process is hidden and says that it is not for the command line") {
  CHECK_FALSE(contains(toy::run({"--help"}).out, "plugin-process"));
  const Ended run = toy::run({"plugin-process"});
  CHECK(run.code == 2);
  CHECK(contains(run.err, "it is not for the command line"));
}

TEST_SUITE_END();
