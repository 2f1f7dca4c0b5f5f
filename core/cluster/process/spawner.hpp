// Starts and watches child processes from a small process that was forked before this one had any thread.
#pragma once
#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hexad::cluster {

struct SpawnRequest {
  std::vector<std::string> command;              // command[0] is an absolute path
  std::map<std::string, std::string> variables;  // added to the environment
  std::string input;                             // what the child reads on its standard input; at most 64 KiB
  std::string log_path;                          // its output goes to this file (appended); empty: to ours
};

struct ChildExit {
  pid_t pid = 0;
  int status = 0;  // exit status, or -signal
};

// Children end when the spawner ends, and the spawner ends when this process does: `kill -9` leaves no orphan.
// One thread uses a Spawner at a time. Throws Error(worker).
class Spawner {
 public:
  // Forks. Call it first in main, before any thread exists.
  Spawner();
  ~Spawner();
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  pid_t spawn(const SpawnRequest& request);
  void kill(pid_t pid, int signal);
  // The next child that has ended, waiting up to timeout_ms for one.
  std::optional<ChildExit> next_exit(int timeout_ms);

 private:
  pid_t pid_ = 0;
  int socket_ = -1;
  std::vector<ChildExit> exits_;
};

// "exit status 3", "killed by signal 9 (Killed)".
std::string describe_exit(int status);

}  // namespace hexad::cluster
