// The processes of this machine by their command lines.
#pragma once
#include <vector>

#include "tests/support/toy/program.hpp"

namespace test_support {

inline std::vector<pid_t> process_ids() {
  std::vector<pid_t> found;
  for (const auto& entry : toy::fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

// Those with `text` in it, zombies not among them.
inline std::vector<pid_t> processes_with(const std::string& text) {
  std::vector<pid_t> found;
  for (const pid_t pid : process_ids()) {
    const toy::Process each = toy::process(pid);
    if (each.state != 'Z' && toy::contains(each.command, text)) found.push_back(pid);
  }
  return found;
}

}  // namespace test_support
