// Starts and watches children from a small process that was forked before this one had any thread: they live as long as
// this process, whatever becomes of the thread that asked for them.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/process/child.hpp"

namespace hexad::process {

struct SpawnRequest {
  std::vector<std::string> command;              // command[0] is an absolute path
  std::map<std::string, std::string> variables;  // added to the environment
  std::string input;                             // what the child reads on its standard input; at most 64 KiB
  std::string log_path;                          // its output goes to this file (appended); empty: to ours
  std::chrono::seconds patience{60};             // until the program runs: the file system of either may hang
};

struct ChildExit {
  pid_t pid = 0;
  Exit exit;
};

// Children end when the spawner ends, and the spawner ends when this process does: `kill -9` leaves no orphan. A
// program that cannot be executed is a child too: it ends with 127, and its log says why. One thread uses a Spawner at
// a time. Throws std::runtime_error.
class Spawner {
 public:
  // Forks (fork_here): call it first in main, before any thread exists. `name`: what /proc and ps call that process, in
  // at most 15 bytes.
  explicit Spawner(const std::string& name);
  ~Spawner();
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  // Waits until the program runs. Past its patience the spawner cannot be used any more.
  pid_t spawn(const SpawnRequest& request);
  void kill(pid_t pid, int signal);
  // The next child that has ended, waiting up to timeout_ms for one.
  std::optional<ChildExit> next_exit(int timeout_ms);

 private:
  Descriptor socket_;
  pid_t pid_ = -1;
  std::deque<ChildExit> exits_;
};

}  // namespace hexad::process
