// Tests that need several ranks: the test program starts itself once a rank and runs one named scenario there.
// In the children doctest runs only the case "rank process", which the including file declares with HEXAD_RANK_PROCESS.
#pragma once
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/free_port.hpp"
#include "tests/support/test_device.hpp"

namespace rank_process {

struct Rank {
  int rank, world, port;
  std::string argument;  // the scenario's own
};

using Scenarios = std::map<std::string, std::function<void(const Rank&)>>;

inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  REQUIRE_MESSAGE(value, std::string(name) << " is not set");
  return value;
}

struct Child {
  pid_t pid = 0;
  std::string log;
  int status = -1;  // exit code; 128 + signal; -1 while it runs
};

inline Child start(const std::string& scenario, const Rank& rank, const std::filesystem::path& dir) {
  std::vector<std::string> env;
  for (char** entry = environ; *entry; ++entry) env.emplace_back(*entry);
  env.push_back("HEXAD_TEST_RANK=" + std::to_string(rank.rank) + " " + std::to_string(rank.world) + " " +
                std::to_string(rank.port) + " " + scenario + " " + rank.argument);
  env.push_back("OMP_NUM_THREADS=1");
  std::vector<char*> env_pointers;
  for (std::string& entry : env) env_pointers.push_back(entry.data());
  env_pointers.push_back(nullptr);
  std::string program = "/proc/self/exe", one = "--test-case=rank process", two = "--no-skip";
  char* arguments[] = {program.data(), one.data(), two.data(), nullptr};

  Child child;
  child.log = (dir / (scenario + "_" + std::to_string(rank.rank) + ".log")).string();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, child.log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  REQUIRE(posix_spawn(&child.pid, program.c_str(), &actions, nullptr, arguments, env_pointers.data()) == 0);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

inline void wait(std::vector<Child>& children, std::chrono::seconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (Child& child : children) {
    int status = 0;
    while (waitpid(child.pid, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) kill(child.pid, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    child.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

inline std::string text_of(const std::string& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::filesystem::path temporary_dir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "hexad_ranks_XXXXXX").string();
  REQUIRE(mkdtemp(pattern.data()));
  return pattern;
}

// Runs `scenario` on `world` ranks; every rank's checks must pass. Ranks listed in `missing` are not started. False:
// left out, as there are not so many GPUs.
inline bool run(const std::string& scenario, int world, const std::string& argument = "",
                const std::vector<int>& missing = {}, std::chrono::seconds limit = std::chrono::seconds(480)) {
  if (!test_device::fits(world, scenario + " on " + std::to_string(world) + " ranks")) return false;
  const std::filesystem::path dir = temporary_dir();
  const int port = test_support::free_port();
  std::vector<Child> children;
  for (int rank = 0; rank < world; ++rank)
    if (std::find(missing.begin(), missing.end(), rank) == missing.end())
      children.push_back(start(scenario, {rank, world, port, argument}, dir));
  wait(children, limit);
  for (const Child& child : children) {
    INFO(scenario << " on " << world << " ranks: " << text_of(child.log));
    CHECK(child.status == 0);
  }
  std::filesystem::remove_all(dir);
  return true;
}

inline void run_child(const Scenarios& scenarios) {
  Rank rank;
  std::string scenario;
  std::stringstream text(environment("HEXAD_TEST_RANK"));
  text >> rank.rank >> rank.world >> rank.port >> scenario;
  std::getline(text >> std::ws, rank.argument);
  REQUIRE_MESSAGE(scenarios.count(scenario), "unknown scenario " << scenario);
  scenarios.at(scenario)(rank);
}

}  // namespace rank_process

#define HEXAD_RANK_PROCESS(scenarios) \
  TEST_CASE("rank process" * doctest::skip()) { rank_process::run_child(scenarios); }
