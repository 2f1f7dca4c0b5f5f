// A server process of ours. It runs in a process group of its own that ends when this process does, however it ends: a
// small shell leads the group and waits for the end of a pipe that only we hold.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/process/child.hpp"

namespace hexad::server {

struct Command {
  std::vector<std::string> arguments;              // program first, found on PATH
  std::map<std::string, std::string> environment;  // beside this process's; may hold a key
  std::string log;                                 // file for its output, appended
  std::string scratch = {};                        // folder that goes if this process is killed; "": none
};

// Its end kills the group and waits for the leader.
class Child {
 public:
  // Throws std::system_error if it cannot be started at all; a program that is not there ends with a line in the log.
  explicit Child(const Command& command);

  pid_t pid() const { return leader_.pid(); }  // of the leader, and of the group
  // What it ended with: "exit code 1", "signal 9"; nothing while it runs.
  std::optional<std::string> ended();

 private:
  process::Descriptor life_;  // our end of the pipe
  process::Child leader_;     // ends before the pipe does: its reader would remove the scratch folder
};

// The last lines of a file, at most `bytes`; "" if it cannot be read.
std::string tail_of(const std::string& file, size_t bytes = 2000);

// A port of 127.0.0.1 that nobody listens on, in [low, high], searched from a place that differs from process to
// process. Nothing if all are taken.
std::optional<int> free_port(int64_t low, int64_t high, int64_t start);

// 32 random bytes in hexadecimal digits.
std::string random_key();

}  // namespace hexad::server
