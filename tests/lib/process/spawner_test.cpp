#include "lib/process/spawner.hpp"

#include <sys/stat.h>

#include "tests/lib/process/support.hpp"

using namespace process_test;

namespace {

constexpr int kPatienceMs = static_cast<int>(std::chrono::milliseconds(kPatience).count());

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("children get input, variables and a log, and their ends are reported") {
  const TempDir dir;
  Spawner spawner("test");
  const std::string log = dir / "log";
  const pid_t pid =
      spawner.spawn({{"/bin/sh", "-c", "cat; echo \" $GREETING\"; exit 3"}, {{"GREETING", "hello"}}, "input", log});
  const auto exit = spawner.next_exit(kPatienceMs);
  REQUIRE(exit);
  CHECK(exit->pid == pid);
  CHECK(exit->exit == Exit{.code = 3});
  CHECK(read_text(log) == "input hello\n");
}

TEST_CASE("input of any bytes reaches a child, up to 64 KiB") {
  const TempDir dir;
  Spawner spawner("test");
  const std::string input = std::string("\0\xff", 2) + std::string(65534, 'x');
  spawner.spawn({{"/bin/cat"}, {}, input, dir / "log"});
  REQUIRE(spawner.next_exit(kPatienceMs));
  CHECK(read_text(dir / "log") == input);
  CHECK_THROWS_WITH_AS(spawner.spawn({{"/bin/cat"}, {}, std::string(200000, 'x'), ""}),
                       "spawner: cannot send 200034 bytes: Message too long", std::system_error);
}

TEST_CASE("a child can be killed") {
  Spawner spawner("test");
  const pid_t pid = spawner.spawn({{"/bin/sleep", "1000"}, {}, "", ""});
  spawner.kill(pid, SIGKILL);
  const auto exit = spawner.next_exit(kPatienceMs);
  REQUIRE(exit);
  CHECK(exit->exit == Exit{.signal = SIGKILL});
}

TEST_CASE("a signal to every process of a job ends neither the spawner nor its children") {
  const TempDir dir;
  Spawner spawner("test");
  const std::string all = "for s in INT TERM HUP USR1; do kill -$s $PPID; kill -$s $$; done; echo alive";
  spawner.spawn({{"/bin/sh", "-c", all}, {}, "", dir / "log"});
  const auto exit = spawner.next_exit(kPatienceMs);
  REQUIRE(exit);
  CHECK(exit->exit == Exit{.code = 0});
  CHECK(read_text(dir / "log") == "alive\n");
}

TEST_CASE("a program that is not there ends with 127 and says so in its log") {
  const TempDir dir;
  Spawner spawner("test");
  const std::string log = dir / "log";
  const pid_t pid = spawner.spawn({{"/no/such/program"}, {}, "", log});
  const auto exit = spawner.next_exit(kPatienceMs);
  REQUIRE(exit);
  CHECK(exit->pid == pid);
  CHECK(exit->exit == Exit{.code = 127});
  CHECK(read_text(log) == "cannot run /no/such/program: No such file or directory\n");
}

TEST_CASE(
    "a spawner that hangs, as in a file system without an answer, holds up neither a start nor the end for ever") {
  const TempDir dir;
  const auto began = Clock::now();
  {
    Spawner spawner("test");
    spawner.spawn({{"/bin/sh", "-c", "echo $PPID > " + (dir / "pid")}, {}, "", ""});
    ::kill(pid_in(dir / "pid"), SIGSTOP);
    CHECK_THROWS_WITH_AS(spawner.spawn({{"/bin/true"}, {}, "", dir / "log", std::chrono::seconds(1)}),
                         "cannot start /bin/true within 1 s: does the file system of the program or of its log answer?",
                         std::runtime_error);
  }
  CHECK(Clock::now() - began < kPatience);
}

TEST_CASE("no child outlives a parent that was killed") {
  const TempDir dir;
  Child parent(fork_here({}, [&] {
    Spawner spawner("test");
    spawner.spawn({{"/bin/sh", "-c", "echo $$ > " + dir / "pid" + "; exec sleep 1000"}, {}, "", ""});
    while (true) ::pause();
    return 0;
  }));
  const pid_t child = pid_in(dir / "pid");
  ::kill(parent.pid(), SIGKILL);
  CHECK(eventually([&] { return !alive(child); }));
}

TEST_SUITE_END();
