// The folders of a run: `config check` asks whether they could be made, touches nothing, and disturbs no run.
#include <doctest/doctest.h>

#include <csignal>

#include "tests/support/report.hpp"
#include "tests/support/toy/train.hpp"

using namespace toy::names;
namespace fs = toy::fs;

namespace {

// `hexad config check --here` of the arguments of a train.
Arguments check_of(Arguments train) {
  train.erase(train.begin());
  train.insert(train.begin(), {"config", "check", "--here"});
  return train;
}

// When anything was made or removed in the folders below it, and what they hold.
std::map<std::string, fs::file_time_type> state_of(const fs::path& folder) {
  std::map<std::string, fs::file_time_type> state = {{folder, fs::last_write_time(folder)}};
  for (const auto& entry : fs::recursive_directory_iterator(folder)) state[entry.path()] = entry.last_write_time();
  return state;
}

// Of a command in a mount of its own, in which a folder can be read alone.
Program read_only(const fs::path& folder, const Arguments& arguments) {
  const std::string script = "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" || exit 99; exec \"$@\"";
  return Program({"unshare", "--mount", "sh", "-c", script, folder.string(), toy::hexad().string()}, arguments, "");
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("config check makes no folder, and changes none that is there") {
  const TempDir dir;
  const Arguments run = train(dir, {"grpo.max_num_steps=2"});
  const auto before = state_of(dir.path());
  const Ended first = toy::run(check_of(run));
  CHECK_MESSAGE(first.code == 0, first.out << first.err);
  CHECK(state_of(dir.path()) == before);
  REQUIRE(toy::run(run).code == 0);
  const auto trained = state_of(dir.path());
  CHECK(toy::run(check_of(run)).code == 0);
  CHECK(state_of(dir.path()) == trained);
}

TEST_CASE("checks beside a run that goes on name it, touch nothing of it, and let it end well") {
  const TempDir dir;
  const Arguments arguments = train(dir, {"+policy.generation.plugin_config.poll_ms=20", "grpo.max_num_steps=4"});
  Program run(arguments);
  REQUIRE(toy::eventually([&] { return contains(run.err(), "step 1/4"); }));
  REQUIRE(::kill(run.pid(), SIGSTOP) == 0);  // so that it changes nothing itself
  const auto changed = [&] {
    return std::vector{fs::last_write_time(dir.path()), fs::last_write_time(dir / "logs"),
                       fs::last_write_time(dir / "checkpoints"), fs::last_write_time(dir / "checkpoints/.lock")};
  };
  const auto before = changed();
  const std::string holder = toy::read_text(dir / "checkpoints/.lock");
  Program one(check_of(arguments)), other(check_of(arguments));
  const Ended checks[] = {one.wait(), other.wait()};
  CHECK(changed() == before);
  CHECK(toy::read_text(dir / "checkpoints/.lock") == holder);
  REQUIRE(::kill(run.pid(), SIGCONT) == 0);
  for (const Ended& check : checks) {
    CHECK(check.code == 2);
    CHECK_MESSAGE(contains(check.out, fmt::format("{}/checkpoints is in use by another run (pid {} on ",
                                                  dir.path().string(), run.pid())),
                  check.out);
  }
  const Ended ended = run.wait();
  CHECK_MESSAGE(ended.code == 0, ended.err);
}

TEST_CASE("runs that start while others are checked get their folders") {
  const TempDir dir;
  const Arguments arguments = train(dir, {"grpo.max_num_steps=1", "++checkpointing.resume_if_exists=false"});
  std::atomic<bool> is_over = false;
  std::jthread checking([&] {
    const Arguments check = check_of(arguments);
    while (!is_over) toy::run(check);
  });
  for (int i = 0; i < 3; ++i) {
    const Ended run = toy::run(arguments);
    CHECK_MESSAGE(run.code == 0, run.err);
  }
  is_over = true;
  checking.join();
  CHECK(fs::exists(dir / "logs/exp_003/metrics.jsonl"));
  CHECK_FALSE(fs::exists(dir / "logs/exp_004"));
}

TEST_CASE("folders in which nothing can be made are refused by check as by train") {
  const TempDir dir;
  fs::create_directories(dir / "closed/checkpoints");
  const std::string closed = (dir / "closed").string();
  const Arguments arguments = train(
      dir, {"logger.log_dir=" + closed + "/logs/mine", "checkpointing.checkpoint_dir=" + closed + "/checkpoints"});
  const Ended check = read_only(dir / "closed", check_of(arguments)).wait();
  if (check.code == 99 || check.code == 1 || check.code == 126)
    return test_report::skipped("no folder can be mounted here");
  const Ended run = read_only(dir / "closed", arguments).wait();
  CHECK(check.code == 2);
  CHECK(run.code == 2);
  const std::string texts[] = {
      fmt::format("logger.log_dir: cannot make {}/logs/mine: Read-only file system", closed),
      fmt::format("checkpointing.checkpoint_dir: cannot write {}/checkpoints/.lock: Read-only file system", closed)};
  for (const std::string& text : texts) {
    CHECK_MESSAGE(contains(check.out, text), check.out);
    CHECK_MESSAGE(contains(run.err, text), run.err);
  }
}

TEST_SUITE_END();
