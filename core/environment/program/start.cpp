#include "core/environment/program/start.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "core/environment/program/program.hpp"

extern char** environ;

namespace hexad::environment {
namespace {

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

void move_above(int (&ends)[2]) {
  for (int& end : ends) {
    const int low = end;
    end = ::fcntl(low, F_DUPFD_CLOEXEC, 10);
    ::close(low);
  }
}

// Descriptors lie above those that a child is given.
struct Ends {
  int ours = -1, its = -1;
  Ends() = default;
  ~Ends() {
    if (ours >= 0) ::close(ours);
    if (its >= 0) ::close(its);
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  void check(int made, int (&ends)[2], bool we_write) {
    if (made == 0) {
      move_above(ends);
      ours = ends[we_write], its = ends[!we_write];
    }
    if (made != 0 || ours < 0 || its < 0) throw ProgramFailed(std::string("no pipe: ") + std::strerror(errno));
    ::fcntl(ours, F_SETFL, O_NONBLOCK);
  }
  int take() { return std::exchange(ours, -1); }
};

struct Pipe : Ends {
  explicit Pipe(bool we_write) {
    int ends[2];
    const int made = ::pipe2(ends, O_CLOEXEC);
    check(made, ends, we_write);
  }
};

struct Sockets : Ends {
  Sockets() {
    int ends[2];
    const int made = ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
    check(made, ends, false);
  }
};

// In the child of a vfork, whose memory is ours: system calls alone. Returns when it fails.
void become(const int (&descriptors)[4], char* const* argv) {
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setpgid(0, 0);  // Ctrl-C on the terminal reaches the controller alone
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (int i = 0; i < 4; ++i) ::dup2(descriptors[i], i);
  ::execve(argv[0], argv, environ);
}

// vfork, because a child has to become a subreaper itself, which posix_spawn cannot say, and because a fork copies the
// page tables of a controller that may be large. The thread waits for the exec; no handler of ours may run meanwhile.
int spawn(pid_t& pid, const int (&descriptors)[4], char* const* argv) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  volatile int error = 0;
  pid = ::vfork();
  if (pid == 0) {
    become(descriptors, argv);
    error = errno;
    ::_exit(127);
  }
  if (pid < 0) error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

}  // namespace

StartedProgram start_program(const std::vector<std::string>& command) {
  Pipe input(/*we_write=*/true), output(false), notes(false);
  Sockets life;
  std::vector<std::string> words = {"/bin/sh", "-c", kLeader, "reward"};
  words.insert(words.end(), command.begin(), command.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  StartedProgram started;
  const int error = spawn(started.leader, {input.its, output.its, notes.its, life.its}, argv.data());
  if (error != 0) {
    if (started.leader > 0) ::waitpid(started.leader, nullptr, 0);
    throw ProgramFailed(std::string("cannot be started: ") + std::strerror(error));
  }
  started.input = input.take(), started.output = output.take(), started.notes = notes.take();
  started.life = life.take();
  return started;
}

}  // namespace hexad::environment
