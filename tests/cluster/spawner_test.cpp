#include "core/cluster/process/spawner.hpp"

#include <doctest/doctest.h>
#include "tests/support/toy/program.hpp"

using namespace hexad;
using toy::TempDir;

namespace {

constexpr int kPatienceMs = static_cast<int>(1000 * toy::kPatienceS);

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("children get input, variables and a log, and their ends are reported") {
  TempDir dir;
  cluster::Spawner spawner;
  const std::string log = dir / "log";
  const pid_t pid =
      spawner.spawn({{"/bin/sh", "-c", "cat; echo \" $GREETING\"; exit 3"}, {{"GREETING", "hello"}}, "input", log});
  const auto exit = spawner.next_exit(kPatienceMs);
  REQUIRE(exit);
  CHECK(exit->pid == pid);
  CHECK(exit->status == 3);
  CHECK(cluster::describe_exit(exit->status) == "exit status 3");
  CHECK(toy::read_text(log) == "input hello\n");
}

TEST_CASE("a child can be killed") {
  cluster::Spawner spawner;
  const pid_t pid = spawner.spawn({{"/bin/sleep", "1000"}, {}, "", ""});
  spawner.kill(pid, SIGKILL);
  const auto exit = spawner.next_exit(kPatienceMs);
  REQUIRE(exit);
  CHECK(exit->status == -SIGKILL);
  CHECK(cluster::describe_exit(exit->status) == "killed by signal 9 (Killed)");
}

TEST_CASE("a program that is not there ends with 127 and says so in its log") {
  TempDir dir;
  cluster::Spawner spawner;
  const std::string log = dir / "log";
  spawner.spawn({{"/no/such/program"}, {}, "", log});
  const auto exit = spawner.next_exit(kPatienceMs);
  REQUIRE(exit);
  CHECK(exit->status == 127);
  CHECK(toy::read_text(log) == "cannot run /no/such/program: No such file or directory\n");
}

TEST_CASE("no child outlives a parent that was killed") {
  TempDir dir;
  const std::filesystem::path pid_file = dir / "pid";
  const pid_t parent = ::fork();
  if (parent == 0) {
    cluster::Spawner spawner;
    spawner.spawn({{"/bin/sh", "-c", "echo $$ > " + pid_file.string() + "; exec sleep 1000"}, {}, "", ""});
    while (true) ::pause();
  }
  REQUIRE(toy::eventually([&] { return toy::read_text(pid_file).ends_with('\n'); }));
  const pid_t child = std::stoi(toy::read_text(pid_file));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  CHECK(toy::eventually([&] { return !toy::alive(child); }));
}

TEST_SUITE_END();
