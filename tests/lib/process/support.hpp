// A folder for what children write, and whether they live.
#pragma once
#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "lib/process/child.hpp"
#include "lib/process/start.hpp"

namespace process_test {

using namespace hexad::process;

inline constexpr auto kPatience = std::chrono::seconds(300);  // a test that passes never waits so long

struct TempDir {
  TempDir() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::string operator/(const std::string& name) const { return path + "/" + name; }
  std::string path = (std::filesystem::temp_directory_path() / "hexad-process-XXXXXX").string();
};

inline std::string read_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// All that comes until the other side has ended.
inline std::string read_all(const Descriptor& from) {
  std::string text;
  char bytes[4096];
  for (ssize_t count; (count = ::read(from.get(), bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<size_t>(count));
  return text;
}

template <typename Done>
bool eventually(Done&& done) {
  const auto until = Clock::now() + kPatience;
  while (!done() && Clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return done();
}

// Zombies do not live: in a container nobody may wait for them.
inline bool alive(pid_t pid) {
  const std::string stat = read_text("/proc/" + std::to_string(pid) + "/stat");
  const size_t end = stat.rfind(')');
  return end != std::string::npos && stat.at(end + 2) != 'Z';
}

// The process id that a child writes to a file.
inline pid_t pid_in(const std::string& path) {
  REQUIRE(eventually([&] { return read_text(path).ends_with('\n'); }));
  return std::stoi(read_text(path));
}

// What a script writes to its standard output.
inline std::string output_of(const std::string& script, Command command = {.arguments = {}}) {
  auto [output, output_end] = make_pipe();
  command.arguments = {"/bin/sh", "-c", script};
  command.setup.descriptors.push_back({output_end.get(), STDOUT_FILENO});
  Child child(start(command));
  output_end.close();
  std::string text = read_all(output);
  child.wait();
  return text;
}

}  // namespace process_test
