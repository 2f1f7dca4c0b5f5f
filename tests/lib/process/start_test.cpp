// Programs and functions in processes of their own: what they are given, and what they are not.
#include <sys/wait.h>

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "tests/lib/process/support.hpp"

using namespace process_test;

namespace {

// The error of a start that must fail.
std::system_error failure_of(const std::string& program) {
  try {
    start({.arguments = {program}});
  } catch (const std::system_error& error) {
    return error;
  }
  FAIL("it was started");
  throw std::logic_error("not reached");
}

std::string file(int number) { return "/proc/self/fd/" + std::to_string(number); }

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a program that cannot be executed is an error with its errno, and leaves no zombie") {
  const TempDir dir;
  std::ofstream(dir / "text") << "no program";
  const std::system_error missing = failure_of("/no/such/program"), text = failure_of(dir / "text");
  CHECK(missing.code().value() == ENOENT);
  CHECK(std::string(missing.what()) == "cannot start /no/such/program: No such file or directory");
  CHECK(text.code().value() == EACCES);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
}

TEST_CASE("a child has our environment, and what is set beside it") {
  ::setenv("HEXAD_TEST_KEPT", "kept", 1);
  ::setenv("HEXAD_TEST_CHANGED", "before", 1);
  Command command = {.arguments = {}, .variables = {{"HEXAD_TEST_CHANGED", "after"}, {"HEXAD_TEST_NEW", "a b=c"}}};
  CHECK(output_of("echo $HEXAD_TEST_KEPT $HEXAD_TEST_CHANGED $HEXAD_TEST_NEW", command) == "kept after a b=c\n");
  CHECK(std::string(std::getenv("HEXAD_TEST_CHANGED")) == "before");
}

TEST_CASE("descriptors have the numbers that are asked for, and no others are there") {
  auto [read_first, write_first] = make_pipe();
  auto [read_second, write_second] = make_pipe();
  const int first = write_first.get(), second = write_second.get();
  const Descriptor leaked(::open("/dev/null", O_RDWR)), far_leaked(::fcntl(leaked.get(), F_DUPFD, 200));
  Command command = {.arguments = {}};
  command.setup.descriptors = {{first, second}, {second, first}};  // each in the other's place
  const std::string there =
      output_of("echo one > " + file(second) + "; echo two > " + file(first) + "; ls /proc/$$/fd; true", command);
  write_first.close(), write_second.close();
  CHECK(read_all(read_first) == "one\n");
  CHECK(read_all(read_second) == "two\n");
  std::istringstream numbers(there);
  for (int number = 0; numbers >> number;)
    CHECK_MESSAGE((number <= STDERR_FILENO || number == first || number == second), number);
}

TEST_CASE("input, output and error can be files, and nothing") {
  const TempDir dir;
  const Descriptor nothing = null_device(), log = open_log(dir / "log", 0600), again = open_log(dir / "log", 0600);
  Command command = {.arguments = {"/bin/sh", "-c", "cat; echo out; echo err >&2"}};
  command.setup.descriptors = {{nothing.get(), 0}, {log.get(), 1}, {again.get(), 2}};
  CHECK(Child(start(command)).wait() == Exit());
  CHECK(read_text(dir / "log") == "out\nerr\n");
  CHECK_THROWS_AS(open_log(dir / "no/log", 0600), std::system_error);
}

TEST_CASE("a child handles, blocks and ignores no signal, and leads a group") {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto handler = ::signal(SIGUSR1, SIG_IGN);
  const unsigned long ignored[4] = {1};  // SIG_IGN, as glibc's posix_spawn leaves its own signal 32 in its children
  ::syscall(SYS_rt_sigaction, 32, ignored, nullptr, sizeof ignored[3]);
  const std::string signals = output_of("grep -E '^Sig(Blk|Ign)' /proc/self/status");
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, &before, &after);
  ::signal(SIGUSR1, handler);
  CHECK(signals == "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
  CHECK(sigismember(&after, SIGTERM));
  CHECK(!sigismember(&after, SIGCHLD));
  CHECK(output_of("read -r pid _ _ _ group _ < /proc/self/stat; [ $pid = $group ] && echo leads") == "leads\n");
}

TEST_CASE("a child that is to ignore a job's signals begins so") {
  Command command = {.arguments = {}};
  command.setup.ignores_job_signals = true;
  // A bit less than each signal: 1 (HUP), 2 (INT), 10 (USR1), 12 (USR2), 15 (TERM), 24 (XCPU) and 25 (XFSZ).
  CHECK(output_of("grep ^SigIgn /proc/self/status", command) == "SigIgn:\t0000000001804a03\n");
}

TEST_CASE("limits hold in the child alone") {
  Command command = {.arguments = {}};
  command.setup.limits = {{RLIMIT_CORE, 0}, {RLIMIT_NOFILE, 77}};
  rlimit ours{};
  ::getrlimit(RLIMIT_NOFILE, &ours);
  CHECK(output_of("ulimit -c; ulimit -n; ulimit -Hn", command) == "0\n77\n77\n");
  rlimit still{};
  ::getrlimit(RLIMIT_NOFILE, &still);
  CHECK(still.rlim_cur == ours.rlim_cur);
}

TEST_CASE("threads start children while others allocate") {
  std::atomic<bool> over = false;
  std::atomic<int> good = 0;
  std::thread busy([&] {
    while (!over) std::vector<std::string>(100, std::string(1000, 'x'));
  });
  std::vector<std::thread> starters;
  for (int i = 0; i < 4; ++i)
    starters.emplace_back([&] {
      for (int j = 0; j < 5; ++j) good += output_of("echo $$ done").ends_with(" done\n");
    });
  for (std::thread& each : starters) each.join();
  over = true;
  busy.join();
  CHECK(good == 20);
}

TEST_CASE("a child that dies with us dies with the thread that has started it") {
  Command command = {.arguments = {"/bin/sleep", "1000"}};
  command.setup.dies_with_us = true;
  Child dies, stays;
  std::thread([&] { dies = Child(start(command)); }).join();
  CHECK(dies.wait() == Exit{.signal = SIGKILL});
  command.setup.dies_with_us = false;
  std::thread([&] { stays = Child(start(command)); }).join();
  CHECK(!stays.wait_until(Clock::now() + std::chrono::milliseconds(50)));
}

TEST_CASE("a child that dies with us does not outlive a kill -9") {
  const TempDir dir;
  Child owner(fork_here({}, [&] {
    Command command = {.arguments = {"/bin/sh", "-c", "echo $$ > " + dir / "pid" + "; exec sleep 1000"}};
    command.setup.dies_with_us = true;
    start(command);
    while (true) ::pause();
    return 0;
  }));
  const pid_t child = pid_in(dir / "pid");
  CHECK(alive(child));
  ::kill(owner.pid(), SIGKILL);
  CHECK(owner.wait() == Exit{.signal = SIGKILL});
  CHECK(eventually([&] { return !alive(child); }));
}

TEST_CASE("a function in a copy of this process: its descriptors, its status, its group") {
  auto [output, output_end] = make_pipe();
  const int kept = 7;
  const Setup setup = {.descriptors = {{output_end.get(), STDOUT_FILENO}}};
  Child child(fork_here(setup, [&] {
    const std::string text = ::getpgrp() == ::getpid() ? "leads" : "follows";
    return ::write(STDOUT_FILENO, text.data(), text.size()) > 0 ? kept : 1;
  }));
  output_end.close();
  CHECK(read_all(output) == "leads");
  CHECK(child.wait() == Exit{.code = 7});
}

TEST_CASE("an exception out of a copy's function ends the copy, and nothing of ours runs in it") {
  const Descriptor nothing = null_device();
  const Setup setup = {.descriptors = {{nothing.get(), STDERR_FILENO}}, .limits = {{RLIMIT_CORE, 0}}};
  Child child(fork_here(setup, []() -> int {
    ::signal(SIGABRT, SIG_DFL);  // the test program's own handler reports it
    throw std::runtime_error("no");
  }));
  CHECK(child.wait() == Exit{.signal = SIGABRT});
}

TEST_SUITE_END();
