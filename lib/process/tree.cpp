#include "lib/process/tree.hpp"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace hexad::process {
namespace {

constexpr auto kReapingTakes = std::chrono::seconds(2);  // unless a process sits in the kernel

// Descriptor 3 is our `life`. The shell keeps none of the program's own pipes, so that their end is the program's. It
// outlives a `kill 0` of the program's, which is in its group. The watcher stops what it finds before it looks for
// children of that, so that none forks away; orphans come to the leader, so it looks until nothing new is there. Where
// /proc is of another pid namespace, whose numbers are not ours, the group alone is killed.
constexpr const char* kLeader = R"sh(
exec 4<&0 </dev/null
"$@" <&4 3<&- 4<&- & program=$!
trap '' HUP INT QUIT TERM PIPE
exec 4<&- >/dev/null 2>&1
(
  read -r _ <&3
  read -r self _ _ parent _ </proc/self/stat
  if [ "$parent" = $$ ]; then
    below=$$ more=1
    while [ $more ]; do
      more=
      for pid in $below; do
        for list in /proc/$pid/task/*/children; do
          children=
          read -r children <$list
          for child in $children; do
            eval "known=\$hexad_known_$child"
            if [ "$known" ] || [ $child = $self ]; then continue; fi
            kill -STOP $child
            eval hexad_known_$child=1
            below="$below $child" more=1
          done
        done
      done
    done
    kill -KILL $below
  fi
  kill -KILL 0
) &
echo $! >&3
wait $program
echo $? >&3
exec 3<&-
wait
)sh";

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

// Kills every process below `root`, whatever group or session it made: all are stopped first, so that none forks away.
// `spared`, a process without children, is left alone, and `root` itself too. Returns how many there were; those that
// have ended and are not waited for yet count. None where /proc is not there, or of another pid namespace.
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

}  // namespace

Tree::Tree(const std::string& name, const std::vector<std::string>& command, int input, int output, int error,
           const std::optional<Sandbox>& sandbox, const std::vector<std::string>& withheld) {
  auto [ours, its] = make_sockets(SOCK_STREAM);
  Command leader = {.arguments = {"/bin/sh", "-c", kLeader, name}};
  leader.arguments.insert(leader.arguments.end(), command.begin(), command.end());
  leader.setup.descriptors = {{input, 0}, {output, 1}, {error, 2}, {its.get(), 3}};
  leader.setup.adopts_orphans = true;
  leader.setup.withheld = withheld;
  leader.setup.sandbox = sandbox;
  if (sandbox && sandbox->strict) {
    folder_.emplace("hexad-" + name);
    leader.setup.sandbox->writes.push_back(folder_->path());
    for (const char* variable : {"TMPDIR", "TMP", "TEMP"}) leader.variables[variable] = folder_->path();
  }
  leader_ = Child(start(leader));
  life_ = std::move(ours);
  life_.never_wait();
}

std::optional<Exit> Tree::ended() {
  if (exit_) return exit_;
  char bytes[64];
  for (ssize_t count; (count = ::read(life_.get(), bytes, sizeof bytes)) > 0;)
    told_.append(bytes, static_cast<size_t>(count));
  const size_t first = told_.find('\n');
  if (first != told_.npos) {
    watcher_ = std::atoi(told_.c_str());
    if (told_.find('\n', first + 1) != told_.npos) {
      const int status = std::atoi(told_.c_str() + first + 1);
      exit_ = status > 128 ? Exit{.signal = status - 128} : Exit{.code = status};
    }
  }
  if (!exit_) exit_ = leader_.peek();
  return exit_;
}

Tree::~Tree() {
  ended();  // who is the watcher?
  const pid_t leader = leader_.pid();
  ::kill(leader, SIGCONT);  // it has to wait for what is killed; else that would be left to us where we are PID 1
  const Clock::time_point until = Clock::now() + kReapingTakes;
  while (kill_below(leader, watcher_) > 0 && Clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  leader_.end();  // and the watcher with it; all of the group where the leader was killed by others
  // As PID 1 we are the parent of those now.
  for (int tries = 0; tries < 300 && ::waitpid(-leader, nullptr, WNOHANG) != -1; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace hexad::process
