// Servers of our own: that nothing is left of them, whatever ends.
#include "lib/server/child.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

using namespace hexad::server;

namespace {

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hexad-test-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()));
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool alive(const std::string& pid) { return !pid.empty() && ::kill(std::stoi(pid), 0) == 0; }

// Waits until it holds, at most 10 s; whether it does.
template <typename Predicate>
bool soon(const Predicate& predicate) {
  for (int i = 0; i < 1000; ++i) {
    if (predicate()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// A server that writes its own number and a helper's, and stays.
std::vector<std::string> writer(const std::filesystem::path& dir) {
  const std::string d = dir.string();
  return {"/bin/sh", "-c", "sleep 1000 & echo $! > " + d + "/helper; echo $$ > " + d + "/server; wait"};
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a child and its helpers end with us, with the object, and when it is killed") {
  const Folder dir;
  const auto start = [&] {
    std::filesystem::remove(dir.path() / "server");
    auto child = std::make_unique<Child>(
        Command{.arguments = writer(dir.path()), .environment = {}, .log = (dir.path() / "log").string()});
    REQUIRE(soon([&] { return !read_file(dir.path() / "server").empty(); }));
    return child;
  };
  const auto both_gone = [&] {
    return soon([&] { return !alive(read_file(dir.path() / "server")) && !alive(read_file(dir.path() / "helper")); });
  };
  auto child = start();
  CHECK(!child->ended());
  child = nullptr;
  CHECK(both_gone());

  child = start();
  ::kill(std::stoi(read_file(dir.path() / "server")), SIGKILL);
  CHECK(soon([&] { return child->ended().has_value(); }));
  CHECK(*child->ended() == "exit code 137");
  CHECK(both_gone());

  // A process that has a child is killed itself, and has no time for anything.
  std::filesystem::remove(dir.path() / "server");
  const std::filesystem::path scratch = dir.path() / "scratch";
  std::filesystem::create_directory(scratch);
  const pid_t owner = ::fork();
  if (owner == 0) {
    const Child grandchild({.arguments = writer(dir.path()),
                            .environment = {},
                            .log = (dir.path() / "log").string(),
                            .scratch = scratch.string()});
    ::pause();
  }
  REQUIRE(soon([&] { return !read_file(dir.path() / "server").empty(); }));
  CHECK(alive(read_file(dir.path() / "server")));
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  CHECK(both_gone());
  CHECK(soon([&] { return !std::filesystem::exists(scratch); }));
}

TEST_CASE("a program that is not there ends with a line in the log") {
  const Folder dir;
  Child child({.arguments = {"/no/such/python"}, .environment = {}, .log = (dir.path() / "log").string()});
  REQUIRE(soon([&] { return child.ended().has_value(); }));
  CHECK(*child.ended() == "exit code 127");
  CHECK(read_file(dir.path() / "log").find("/no/such/python: not found") != std::string::npos);
  CHECK(tail_of((dir.path() / "log").string(), 5) == " 127\n");
}

TEST_SUITE_END();

TEST_CASE("a port that is taken is passed over, and none is found where all are") {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  socklen_t size = sizeof address;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  const int taken = ntohs(address.sin_port);
  CHECK(!free_port(taken, taken, 0));
  CHECK(free_port(taken, taken + 20, 0).value_or(taken) != taken);
  ::close(listener);
}

TEST_CASE("the end of a file that is not there is empty, and no key is given twice") {
  CHECK(tail_of("/no/such/file").empty());
  CHECK(random_key().size() == 64);
  CHECK(random_key() != random_key());
}
