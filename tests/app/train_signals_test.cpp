// Signals that end a run in each of its phases, ask it for a checkpoint, or mean others; and consoles that go away.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "tests/support/toy/train.hpp"

using namespace toy::names;

namespace {

const char* const kSlow = "+policy.plugin_config.fault=train@0:slow";
const char* const kNoPeriod = "checkpointing.save_period=100";

// `hexad train` of the toy's config below a shell: `script` has the command line as "$@".
Program under_shell(const std::string& script, const Arguments& arguments) {
  return Program({"bash", "-c", script, "bash", toy::hexad().string()}, arguments, "");
}

void check_nothing_left(const TempDir& dir, const Ended& ended) {
  INFO(ended.err);
  CHECK(ended.code == 130);
  CHECK(ended.out == "interrupted before the first step: nothing is left of this run\n");
  CHECK(contains(ended.err, "interrupted before the first step: stopping"));
  CHECK_FALSE(toy::fs::exists(dir / "logs"));
  CHECK_FALSE(toy::fs::exists(dir / "checkpoints"));
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("SIGINT, SIGTERM and SIGHUP give up what does not come, save the step before, and end with 130") {
  const TempDir undisturbed;
  REQUIRE(toy::run(train(undisturbed)).code == 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    CAPTURE(signal);
    const TempDir dir;
    Program program(train(dir, {kNoPeriod, "+policy.generation.plugin_config.fault=silence@3:alive"}));
    REQUIRE(toy::eventually([&] { return contains(program.err(), "step 2/6"); }));
    const auto workers = toy::workers_of(program.pid());
    ::kill(program.pid(), signal);
    if (signal == SIGHUP) ::kill(program.pid(), signal);  // the shell and the system both say it, and nobody pressed
    const Ended ended = program.wait();
    INFO(ended.err);
    CHECK(ended.code == 130);
    CHECK(contains(ended.out, "interrupted and saved after step 2: "));
    CHECK(lines(dir / "logs/exp_001/metrics.jsonl").size() == 2);
    CHECK(toy::fs::exists(dir / "logs/exp_001/report.html"));
    CHECK(weights(dir, 2) != "");
    CHECK(workers.size() == 1);
    CHECK(toy::eventually([&] { return all_gone(workers); }));
    CHECK(toy::run(train(dir)).code == 0);
    CHECK(weights(dir, 6) == weights(undisturbed, 6));
  }
}

TEST_CASE("before the first step a signal leaves nothing, whatever the run waits for") {
  SUBCASE("a rank that does not start") {
    const TempDir dir;
    Program program(train(dir, {"+policy.plugin_config.fault=create@0:hang"}));
    REQUIRE(toy::eventually([&] { return toy::workers_of(program.pid()).size() == 1; }));
    const auto workers = toy::workers_of(program.pid());
    ::kill(program.pid(), SIGTERM);
    check_nothing_left(dir, program.wait());
    CHECK(toy::eventually([&] { return all_gone(workers); }));
  }
  SUBCASE("a generator that does not answer") {
    const TempDir dir;
    Program program(train(dir, {"+policy.generation.plugin_config.fault=generate@1:hang"}));
    REQUIRE(toy::eventually([&] { return contains(program.err(), "\ngenerator "); }));
    ::kill(program.pid(), SIGTERM);
    check_nothing_left(dir, program.wait());
  }
  SUBCASE("a file that cannot be read to its end") {
    const TempDir dir;
    const std::string file = dir / "prompt.txt";  // opening it waits for somebody who writes
    REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
    Program program(train(dir, {"++data.train.prompt_file=" + file}));
    // Nothing is told while the file is waited for, and handlers of signals are there from the first moment.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    ::kill(program.pid(), SIGTERM);
    const Ended ended = program.wait();
    CHECK(ended.code == 130);
    CHECK(ended.err == "\ninterrupted before the first step: stopping\n");
    CHECK_FALSE(toy::fs::exists(dir / "logs"));
    CHECK_FALSE(toy::fs::exists(dir / "checkpoints"));
  }
  SUBCASE("and what a fresh run has set aside is where it was") {
    const TempDir dir;
    REQUIRE(toy::run(train(dir, {"grpo.max_num_steps=2"})).code == 0);
    const std::string saved = weights(dir, 2);
    Program program(train(dir, {"--fresh", "+policy.generation.plugin_config.fault=silence@1:alive"}));
    REQUIRE(toy::eventually([&] { return contains(program.err(), "starts at step 0; "); }));
    CHECK(weights(dir, 2) == "");
    ::kill(program.pid(), SIGTERM);
    CHECK(program.wait().code == 130);
    CHECK(weights(dir, 2) == saved);
    CHECK(toy::fs::exists(dir / "checkpoints/latest_checkpoint_status.json"));
    CHECK_FALSE(toy::fs::exists(dir / "checkpoints/run_1"));
  }
  SUBCASE("and a run that goes on keeps what was saved before it") {
    const TempDir dir;
    REQUIRE(toy::run(train(dir, {"grpo.max_num_steps=2"})).code == 0);
    const std::string saved = weights(dir, 2);
    Program program(train(dir, {"+policy.generation.plugin_config.fault=silence@3:alive"}));
    REQUIRE(toy::eventually([&] { return contains(program.err(), "resumed from "); }));
    ::kill(program.pid(), SIGTERM);
    CHECK(program.wait().code == 130);
    CHECK(weights(dir, 2) == saved);
    CHECK(toy::fs::exists(dir / "logs/exp_001/report.html"));
    CHECK_FALSE(toy::fs::exists(dir / "logs/exp_002"));
  }
}

TEST_CASE("SIGUSR1 saves after the step, and the run goes on") {
  const TempDir dir;
  Program program(train(dir, {kNoPeriod, kSlow}));
  REQUIRE(toy::eventually([&] { return contains(program.err(), "step 1/6"); }));
  ::kill(program.pid(), SIGUSR1);
  const Ended ended = program.wait();
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(contains(ended.err, "SIGUSR1: saving after this step"));
  const size_t saved = ended.err.find("saved "), last = ended.err.find("step 6/6");
  CHECK(saved < last);
  CHECK(lines(dir / "logs/exp_001/metrics.jsonl").size() == 6);

  const TempDir unsaved;
  Program without(train(unsaved, {"checkpointing.enabled=false", kSlow}));
  REQUIRE(toy::eventually([&] { return contains(without.err(), "step 1/6"); }));
  ::kill(without.pid(), SIGUSR1);
  const Ended end = without.wait();
  CHECK(end.code == 0);
  CHECK_MESSAGE(contains(end.err, "a checkpoint was asked for by a signal, and checkpointing.enabled is false"),
                end.err);
}

TEST_CASE("what schedulers send near a limit saves: SIGUSR2 and the run goes on, SIGXCPU and it ends") {
  for (const int signal : {SIGUSR2, SIGXCPU}) {
    CAPTURE(signal);
    const TempDir dir;
    Program program(train(dir, {kNoPeriod, kSlow}));
    REQUIRE(toy::eventually([&] { return contains(program.err(), "step 1/6"); }));
    const auto workers = toy::workers_of(program.pid());
    REQUIRE(workers.size() == 1);
    ::kill(workers[0], signal);  // the first process's alone
    ::kill(program.pid(), signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (signal == SIGXCPU) ::kill(program.pid(), signal);  // as the kernel does every second
    const Ended ended = program.wait();
    INFO(ended.err);
    CHECK(ended.code == (signal == SIGXCPU ? 130 : 0));
    if (signal == SIGXCPU) CHECK(contains(ended.out, "interrupted and saved after step "));
    if (signal == SIGUSR2) CHECK(contains(ended.err, "SIGUSR2: saving after this step"));
    if (signal == SIGUSR2) CHECK(ended.err.find("saved ") < ended.err.find("step 6/6"));
  }
}

TEST_CASE("a limit of the size of files is an error that names the file") {
  const TempDir dir;
  const char* const script = "(ulimit -f 1; exec \"$@\") 2>&1 | cat >&2; exit ${PIPESTATUS[0]}";
  const Ended ended = under_shell(script, train(dir)).wait();
  INFO(ended.err);
  CHECK(ended.code == 2);
  CHECK(contains(ended.err, "logs/exp_001/config.yaml: File too large"));
}

TEST_CASE("SIGHUP that was ignored when the run began, as nohup leaves it, stays ignored") {
  const TempDir dir;
  Program program = under_shell("trap '' HUP; exec \"$@\"", train(dir, {kSlow}));
  REQUIRE(toy::eventually([&] { return contains(program.err(), "step 1/6"); }));
  ::kill(program.pid(), SIGHUP);
  const Ended ended = program.wait();
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(lines(dir / "logs/exp_001/metrics.jsonl").size() == 6);
}

TEST_CASE("a signal that every process of a job gets is the controller's alone") {
  const TempDir dir;
  Program program(train(dir, {kNoPeriod, kSlow}));
  REQUIRE(toy::eventually([&] { return contains(program.err(), "step 1/6"); }));
  const auto workers = toy::workers_of(program.pid());
  REQUIRE(workers.size() == 1);
  const pid_t spawner = toy::process(workers[0]).parent;
  for (const int signal : {SIGUSR1, SIGTERM})
    for (const pid_t pid : {workers[0], spawner}) ::kill(pid, signal);
  REQUIRE(toy::eventually([&] { return contains(program.err(), "step 3/6"); }));
  for (const pid_t pid : {workers[0], spawner, program.pid()}) ::kill(pid, SIGTERM);
  const Ended ended = program.wait();
  INFO(ended.err);
  CHECK(ended.code == 130);
  CHECK(contains(ended.out, "interrupted and saved after step "));
}

TEST_CASE("a console that goes away, is full or was never there ends no training") {
  for (const char* script :
       {"\"$@\" 2>&1 | head -1 > /dev/null; exit ${PIPESTATUS[0]}", "exec \"$@\" > /dev/full 2> /dev/full",
        "exec \"$@\" >&- 2>&-", "exec \"$@\" <&- >&- 2>&-", "exec \"$@\" 2>&-"}) {
    CAPTURE(script);
    const TempDir dir;
    const Ended ended = under_shell(script, train(dir)).wait();
    CHECK(ended.code == 0);
    CHECK(lines(dir / "logs/exp_001/metrics.jsonl").size() == 6);  // each of which is JSON
    CHECK(plugin_test::read_text(dir / "checkpoints/.lock").starts_with("pid "));
    CHECK(weights(dir, 6) != "");
    CHECK(toy::fs::exists(dir / "logs/exp_001/report.html"));
  }
}

TEST_CASE("Ctrl-C that ends the reader of the console too loses nothing") {
  const TempDir dir;
  Program program =
      under_shell("\"$@\" 2>&1 | head -c 1 > /dev/null; exit ${PIPESTATUS[0]}", train(dir, {kNoPeriod, kSlow}));
  const auto steps = dir / "logs/exp_001/metrics.jsonl";
  REQUIRE(toy::eventually([&] { return toy::fs::exists(steps) && !lines(steps).empty(); }));
  for (const pid_t pid : toy::process_ids())
    if (toy::process(pid).parent == program.pid() && contains(toy::process(pid).command, "train")) ::kill(pid, SIGINT);
  const Ended ended = program.wait();
  CHECK(ended.code == 130);
  const auto trained = static_cast<int>(lines(steps).size());
  CHECK(weights(dir, trained) != "");
  CHECK(toy::fs::exists(dir / "logs/exp_001/report.html"));
}

TEST_CASE("an outcome in JSON that cannot be written is told by the exit status") {
  const TempDir dir;
  Arguments arguments = train(dir, {"--json", "grpo.max_num_steps=2"});
  const Ended ended = under_shell("exec \"$@\" > /dev/full", arguments).wait();
  CHECK(ended.code == 2);
  CHECK_MESSAGE(contains(ended.err, "hexad: standard output: cannot be written: No space left on device"), ended.err);
  CHECK(weights(dir, 2) != "");
}

TEST_SUITE_END();
