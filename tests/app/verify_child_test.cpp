// A level of the conformance kit in its own process: it never outlives the program that has started it.
#include "app/verify/child.hpp"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "lib/process/child.hpp"
#include "lib/process/descriptor.hpp"
#include "lib/process/start.hpp"

using namespace hexad;

namespace {

// The next byte, and nothing at the end of the stream.
std::optional<char> next(const process::Descriptor& from) {
  pollfd waited = {from.get(), POLLIN, 0};
  REQUIRE_MESSAGE(::poll(&waited, 1, 10'000) == 1, "somebody holds the pipe still");
  char byte = 0;
  if (::read(from.get(), &byte, 1) != 1) return std::nullopt;
  return byte;
}

// A level that never ends in a program that `signal` ends. Its process, and with `helper` one that it starts, hold the
// other end of the pipe that is read here to its end.
void check_ended_by(int signal, bool helper) {
  CAPTURE(signal);
  auto [read_end, write_end] = process::make_pipe();
  const pid_t program = process::fork_here({.limits = {{RLIMIT_CORE, 0}}}, [&, end = write_end.get()] {
    ::signal(signal, SIG_DFL);  // whoever runs the tests may ignore it
    plugin::run_in_child(
        [&] {
          const pid_t started = helper ? ::fork() : 0;
          const char here = started < 0 ? '-' : 'x';
          while (::write(end, &here, 1) == 1) ::pause();
          return std::string();
        },
        {});
    return 0;
  });
  write_end.close();
  for (int process = 0; process < 1 + helper; ++process) CHECK(next(read_end) == 'x');
  REQUIRE(::kill(program, signal) == 0);
  CHECK(next(read_end) == std::nullopt);
  process::Child ended(program);
  CHECK(ended.wait().signal == signal);
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a signal that ends the program ends the level that runs, and what the level has started") {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) check_ended_by(signal, /*helper=*/true);
}

TEST_CASE("SIGKILL ends the level with the program") { check_ended_by(SIGKILL, /*helper=*/false); }

TEST_CASE("a signal that is ignored stays so, and handlers are as before") {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  const plugin::ChildResult result = plugin::run_in_child(
      [] {
        ::kill(::getppid(), SIGHUP);
        return std::string("done");
      },
      {});
  CHECK(result.answer == "done");
  CHECK((std::signal(SIGHUP, before) == SIG_IGN));
}

TEST_SUITE_END();
