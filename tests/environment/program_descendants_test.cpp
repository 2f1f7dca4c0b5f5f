// What a reward program leaves behind ends with it, whatever group or session it made, and stays no zombie.
#include <unistd.h>

#include <csignal>

#include "tests/environment/scripted_program.hpp"
#include "tests/support/report.hpp"
#include "tests/support/toy/program.hpp"

using namespace scripted;
using Flags = std::vector<uint8_t>;

namespace {

// The part of a command line that all children of a scattering program have.
struct Mark {
  explicit Mark(const Script& script) : text((script.dir / "scattered").string()) {}
  // The first sleeping children, and some of those that come one after the other.
  bool seen() const { return toy::processes_with(text).size() > 12; }
  std::vector<pid_t> left() const { return toy::processes_with(text); }
  std::string text;
};

std::vector<pid_t> zombies_of(pid_t parent) {
  std::vector<pid_t> found;
  for (const pid_t pid : toy::process_ids()) {
    const toy::Process each = toy::process(pid);
    if (each.parent == parent && each.state == 'Z') found.push_back(pid);
  }
  return found;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a hanging program is killed with children that made groups and sessions, and with orphans") {
  Script script;
  const Mark mark(script);
  const auto environment = script.make({{"num_workers", 1}, {"retries", 0}, {"timeout_s", 2}});
  score(*environment, {"good"});
  CHECK(score(*environment, {"scatter:hang:" + mark.text}).invalid == Flags{1});
  CHECK(mark.left().empty());
}

TEST_CASE("what a program left behind ends with it, when it dies and when the environment ends") {
  Script script;
  const Mark mark(script);
  {
    const auto environment = script.make({{"num_workers", 1}, {"retries", 0}});
    score(*environment, {"good"});
    CHECK(score(*environment, {"scatter:die:" + mark.text}).invalid == Flags{1});
    CHECK(mark.left().empty());
    CHECK(score(*environment, {"scatter:answer:" + mark.text}).invalid == Flags{0});
    CHECK(toy::eventually([&] { return mark.seen(); }));
  }
  CHECK(mark.left().empty());
}

TEST_CASE("kill -9 of the process that has the environment ends all of its program's descendants") {
  Script script;
  const Mark mark(script);
  const pid_t owner = ::fork();
  if (owner == 0) {
    const auto environment = script.make({{"retries", 0}, {"timeout_s", 1000}});
    score(*environment, {"scatter:hang:" + mark.text, "good"});
    ::_exit(1);
  }
  REQUIRE(toy::eventually([&] { return mark.seen(); }));
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  CHECK(toy::eventually([&] { return mark.left().empty() && toy::processes_with(script.file).empty(); }));
}

TEST_CASE("a program that signals its own group ends, and what it left behind too") {
  Script script;
  const Mark mark(script);
  const Json command = {"sh", "-c",
                        "read -r line; setsid sh -c 'sleep 1000; exit' '" + mark.text + "' & sleep 0.2; kill -TERM 0"};
  const auto environment = script.make({{"command", command}, {"num_workers", 1}, {"retries", 0}});
  CHECK(toy::contains(plugin_test::error_of([&] { score(*environment, {"good"}); }),
                      "was killed by signal 15 (Terminated)"));
  CHECK(mark.left().empty());
}

// Run by the next one.
TEST_CASE("as PID 1: programs that die leave no zombies" * doctest::skip()) {
  REQUIRE(::getpid() == 1);
  Script script;
  const Mark mark(script);
  const auto environment = script.make({{"num_workers", 3}, {"retries", 0}});
  for (int round = 0; round < 3; ++round) {
    score(*environment, {"good", "die", "half", "scatter:die:" + mark.text, "good", "die"});
    CHECK(zombies_of(1).empty());
  }
  CHECK(mark.left().empty());
}

TEST_CASE("a controller without an init collects no zombies of reward programs") {
  std::vector<std::string> command = {"unshare", "--fork", "--pid", "--mount-proc", "--kill-child"};
  if (toy::Program(command, {"true"}, "").wait().code != 0) {
    test_report::skipped("unshare cannot make a pid namespace");
    return;
  }
  command.push_back(toy::fs::read_symlink("/proc/self/exe"));
  const toy::Ended ended =
      toy::Program(command, {"--no-skip", "--test-case=as PID 1: programs that die leave no zombies"}, "").wait();
  CHECK_MESSAGE(ended.code == 0, ended.out, ended.err);
  CHECK_MESSAGE(toy::contains(ended.out, "1 passed"), ended.out);
}

TEST_SUITE_END();
