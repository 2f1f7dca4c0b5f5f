// Whole runs among strangers: where they listen, what idle connections do to them, and limits that are too low.
#include <doctest/doctest.h>

#include "tests/support/listening.hpp"
#include "tests/support/toy/train.hpp"

using namespace toy::names;
using test_support::listening;
using test_support::Place;

namespace {

// `hexad train` that may have so many files open.
Program limited(int files, const Arguments& arguments) {
  const std::string script = fmt::format("ulimit -n {}; exec \"$@\"", files);
  return Program({"bash", "-c", script, "bash", toy::hexad().string()}, arguments, "");
}

bool has_runtime() { return toy::fs::exists(toy::hexad().parent_path().parent_path() / "lib/libhexad_runtime.so"); }

// Goes on until it is told to end.
const char* const kEndless = "grpo.max_num_steps=1000000";

bool has_trained(const Program& program, int step) { return contains(program.err(), fmt::format("step {}/", step)); }

void end(Program& program) {
  ::kill(program.pid(), SIGINT);
  const Ended ended = program.wait();
  CHECK_MESSAGE(ended.code == 130, ended.err);
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a run of several ranks on one host listens on loopback alone") {
  if (!has_runtime()) return;
  const TempDir dir;
  Program program(train(dir, {"cluster.gpus_per_node=2", kEndless, "grpo.max_num_epochs=1000000"}));
  REQUIRE_MESSAGE(toy::eventually([&] { return has_trained(program, 2); }), program.err());
  const auto workers = toy::workers_of(program.pid());
  REQUIRE(workers.size() == 2);
  size_t ports = 0;
  for (const pid_t pid : {program.pid(), workers[0], workers[1]}) {
    for (const Place& place : listening(pid)) {
      CHECK_MESSAGE(place.address == test_support::kLoopback, "port " << place.port);
      const test_support::Idlers idlers(place.port, 1);
      CHECK(idlers.size() == 1);
      ++ports;
    }
  }
  CHECK(ports >= 2);  // the controller's, and the store's
  end(program);
}

TEST_CASE("idle connections of strangers end no run that may have few files open") {
  constexpr int kFiles = 256, kStrangers = 400;
  const TempDir dir;
  Program program = limited(kFiles, train(dir, {kEndless, "grpo.max_num_epochs=1000000"}));
  REQUIRE_MESSAGE(toy::eventually([&] { return has_trained(program, 5); }), program.err());
  const std::vector<Place> places = listening(program.pid());
  REQUIRE(places.size() == 1);
  const test_support::Idlers idlers(places[0].port, kStrangers);
  CHECK(idlers.size() == kStrangers);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  CHECK(idlers.let_in() == 0);
  const std::string before = program.err();
  CHECK(toy::eventually([&] { return program.err().size() > before.size() + 200; }));
  CHECK(toy::alive(program.pid()));
  end(program);
}

TEST_CASE("a limit of open files that is too low for the ranks is one line, at once") {
  const TempDir dir;
  Program program = limited(60, train(dir, {"cluster.gpus_per_node=2"}));
  const Ended ended = program.wait();
  CHECK(ended.code == 2);
  CHECK_MESSAGE(contains(ended.err,
                         "error: cluster.gpus_per_node: a run of 2 ranks wants 64 open files in each process, and this "
                         "one may have 60 "
                         "(RLIMIT_NOFILE, its soft limit raised to the hard one): raise the hard limit"),
                ended.err);
  CHECK(ended.seconds < 60);
}

TEST_CASE("the soft limit is raised to the hard one before the ranks start") {
  const TempDir dir;
  const std::string script = "ulimit -Sn 60; exec \"$@\"";
  Program program({"bash", "-c", script, "bash", toy::hexad().string()},
                  train(dir, {kEndless, "grpo.max_num_epochs=1000000"}), "");
  REQUIRE_MESSAGE(toy::eventually([&] { return has_trained(program, 1); }), program.err());
  const auto workers = toy::workers_of(program.pid());
  REQUIRE(workers.size() == 1);
  const auto soft_is_hard = [](pid_t pid) {
    std::istringstream limits(toy::read_text(toy::fs::path("/proc") / std::to_string(pid) / "limits"));
    for (std::string line; std::getline(limits, line);) {
      if (!line.starts_with("Max open files")) continue;
      std::istringstream words(line.substr(std::string("Max open files").size()));
      std::string soft, hard;
      words >> soft >> hard;
      return soft == hard;
    }
    return false;
  };
  CHECK(soft_is_hard(program.pid()));
  CHECK(soft_is_hard(workers[0]));
  end(program);
}

TEST_SUITE_END();
