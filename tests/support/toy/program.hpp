// Runs the `hexad` program and keeps what it said.
#pragma once
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "tests/support/toy/toy.hpp"

namespace toy {

// Until what must come has not come, in seconds: other programs may have the cores, and a test that passes never waits
// so long.
constexpr double kPatienceS = 300;

struct Ended {
  int code = -1;  // exit status, or -signal
  std::string out, err;
  double seconds = 0;
};

// A started program. `wait` must be called once.
class Program {
 public:
  explicit Program(const std::vector<std::string>& arguments, const std::string& input = "")
      : Program({hexad().string()}, arguments, input) {}
  // `command`, found on PATH, with these arguments after its own.
  Program(std::vector<std::string> command, const std::vector<std::string>& arguments, const std::string& input)
      : began_(Clock::now()) {
    command.insert(command.end(), arguments.begin(), arguments.end());
    const fs::path in = dir_.write("in", input), out = dir_ / "out", err = dir_ / "err";
    pid_ = ::fork();
    if (pid_ != 0) return;
    redirect(in, O_RDONLY, STDIN_FILENO);
    redirect(out, O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
    redirect(err, O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
    std::vector<char*> argv;
    for (std::string& argument : command) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execvp(argv[0], argv.data());
    ::_exit(126);
  }
  ~Program() {
    if (!waited_) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  std::string out() const { return read_text(dir_ / "out"); }
  std::string err() const { return read_text(dir_ / "err"); }

  // Its end; a program that runs on for so long from now is killed and fails the test.
  Ended wait(double timeout_s = kPatienceS) {
    const double until = seconds() + timeout_s;
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (seconds() > until) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, &status, 0);
        FAIL_CHECK("hexad still ran after " << timeout_s << " s\n" << out() << err());
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    waited_ = true;
    return {WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status), out(), err(), seconds()};
  }

 private:
  using Clock = std::chrono::steady_clock;
  static void redirect(const fs::path& path, int flags, int to) {
    const int fd = ::open(path.c_str(), flags, 0644);
    ::dup2(fd, to);
    ::close(fd);
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

  TempDir dir_;
  Clock::time_point began_;
  pid_t pid_ = 0;
  bool waited_ = false;
};

inline Ended run(const std::vector<std::string>& arguments, const std::string& input = "",
                 double timeout_s = kPatienceS) {
  return Program(arguments, input).wait(timeout_s);
}

// Waits until `done` holds; false when the time is over.
template <typename Done>
bool eventually(Done&& done, double timeout_s = kPatienceS) {
  const auto began = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() < timeout_s) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return done();
}

// What /proc says of a process: its parent, and whether it is a zombie.
struct Process {
  pid_t parent = 0;
  char state = '?';
  std::string command;
};

inline Process process(pid_t pid) {
  Process result;
  const fs::path proc = fs::path("/proc") / std::to_string(pid);
  const std::string stat = read_text(proc / "stat");
  const size_t end = stat.rfind(')');
  if (end == std::string::npos) return result;
  std::istringstream(stat.substr(end + 1)) >> result.state >> result.parent;
  result.command = read_text(proc / "cmdline");
  std::replace(result.command.begin(), result.command.end(), '\0', ' ');
  return result;
}

// All processes of this machine.
inline std::vector<pid_t> process_ids() {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

// Those with `text` in their command lines, zombies not among them.
inline std::vector<pid_t> processes_with(const std::string& text) {
  std::vector<pid_t> found;
  for (const pid_t pid : process_ids()) {
    const Process each = process(pid);
    if (each.state != 'Z' && contains(each.command, text)) found.push_back(pid);
  }
  return found;
}

// The `hexad worker` processes of a controller; its spawner stands between.
inline std::vector<pid_t> workers_of(pid_t controller) {
  std::vector<pid_t> found;
  for (const pid_t pid : process_ids()) {
    const Process worker = process(pid);
    if (contains(worker.command, "hexad worker") && process(worker.parent).parent == controller) found.push_back(pid);
  }
  return found;
}

// True while the process exists and is no zombie.
inline bool alive(pid_t pid) {
  const Process found = process(pid);
  return found.parent != 0 && found.state != 'Z' && found.state != 'X';
}

inline bool all_gone(const std::vector<pid_t>& pids) { return std::ranges::none_of(pids, alive); }

}  // namespace toy
