#include "lib/process/descendants.hpp"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace hexad::process {
namespace {

namespace fs = std::filesystem;

// Whether the numbers in /proc are those that kill() takes: in a pid namespace it may still be the outer one's.
bool proc_is_ours() {
  std::error_code none;
  return fs::read_symlink("/proc/self", none) == std::to_string(::getpid());
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code none;
  for (fs::directory_iterator task("/proc/" + std::to_string(pid) + "/task", none), end; !none && task != end;
       task.increment(none)) {
    std::ifstream list(task->path() / "children");
    for (pid_t child = 0; list >> child;) children.push_back(child);
  }
  return children;
}

}  // namespace

size_t kill_below(pid_t root, pid_t spared) {
  if (!proc_is_ours()) return 0;
  std::set<pid_t> found;
  // An orphan goes up to a process whose children were read before: until nothing new is there.
  size_t before;
  do {
    before = found.size();
    std::vector<pid_t> open = {root};
    while (!open.empty()) {
      const pid_t parent = open.back();
      open.pop_back();
      for (const pid_t child : children_of(parent)) {
        if (child == spared) continue;
        if (found.insert(child).second) ::kill(child, SIGSTOP);
        open.push_back(child);
      }
    }
  } while (found.size() != before);
  for (const pid_t pid : found) ::kill(pid, SIGKILL);
  return found.size();
}

}  // namespace hexad::process
