#include "core/cluster/spawner.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/base/error.hpp"

using namespace hexad;

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct TempDir {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("hexad-spawner-" + std::to_string(::getpid()));
  TempDir() { std::filesystem::create_directories(path); }
  ~TempDir() { std::filesystem::remove_all(path); }
};

}  // namespace

TEST_CASE("children get input, variables and a log, and their ends are reported") {
  TempDir dir;
  cluster::Spawner spawner;
  const std::string log = dir.path / "log";
  const pid_t pid =
      spawner.spawn({{"/bin/sh", "-c", "cat; echo \" $GREETING\"; exit 3"}, {{"GREETING", "hello"}}, "input", log});
  const auto exit = spawner.next_exit(5000);
  REQUIRE(exit);
  CHECK(exit->pid == pid);
  CHECK(exit->status == 3);
  CHECK(cluster::describe_exit(exit->status) == "exit status 3");
  CHECK(read(log) == "input hello\n");
}

TEST_CASE("a child can be killed") {
  cluster::Spawner spawner;
  const pid_t pid = spawner.spawn({{"/bin/sleep", "100"}, {}, "", ""});
  spawner.kill(pid, SIGKILL);
  const auto exit = spawner.next_exit(5000);
  REQUIRE(exit);
  CHECK(exit->status == -SIGKILL);
  CHECK(cluster::describe_exit(exit->status) == "killed by signal 9 (Killed)");
}

TEST_CASE("a program that is not there ends with 127 and says so in its log") {
  TempDir dir;
  cluster::Spawner spawner;
  const std::string log = dir.path / "log";
  spawner.spawn({{"/no/such/program"}, {}, "", log});
  const auto exit = spawner.next_exit(5000);
  REQUIRE(exit);
  CHECK(exit->status == 127);
  CHECK(read(log) == "cannot run /no/such/program: No such file or directory\n");
}

TEST_CASE("no child outlives a parent that was killed") {
  TempDir dir;
  const std::filesystem::path pid_file = dir.path / "pid";
  const pid_t parent = ::fork();
  if (parent == 0) {
    cluster::Spawner spawner;
    spawner.spawn({{"/bin/sh", "-c", "echo $$ > " + pid_file.string() + "; exec sleep 100"}, {}, "", ""});
    while (true) ::pause();
  }
  for (int i = 0; i < 100 && read(pid_file).empty(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const pid_t child = std::stoi(read(pid_file));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  bool gone = false;
  for (int i = 0; i < 100 && !gone; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    // A zombie that init has not reaped yet counts as gone.
    gone = ::kill(child, 0) != 0 || read("/proc/" + std::to_string(child) + "/stat").find(") Z") != std::string::npos;
  }
  CHECK(gone);
}
