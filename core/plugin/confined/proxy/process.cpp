#include "core/plugin/confined/proxy/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <future>
#include <thread>

#include "lib/base/error.hpp"
#include "core/plugin/confined/serve/server.hpp"

extern char** environ;

namespace hexad::plugin::confined {
namespace {

constexpr size_t kMostOutput = 2000;
constexpr auto kEndingTakes = std::chrono::seconds(2);

// posix_spawn: a worker that holds LibTorch and threads is not forked, only a program is started beside it.
pid_t spawn(const std::filesystem::path& program, int control, int output) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, control, kControlDescriptor);
  ::posix_spawn_file_actions_addclosefrom_np(&files, kControlDescriptor + 1);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setpgroup(&attributes, 0);  // Ctrl-C on the terminal reaches the controller alone
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const std::string path = program.string(), parent = std::to_string(::getpid());
  const char* argv[] = {path.c_str(), kCommand, parent.c_str(), nullptr};
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, path.c_str(), &files, &attributes, const_cast<char**>(argv), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) fail(ErrorKind::worker, "cannot start {} for a plugin's own process: {}", path, std::strerror(error));
  return pid;
}

std::string status_text(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("ended by itself with exit code {}", WEXITSTATUS(status));
}

}  // namespace

Process::Process(const std::filesystem::path& program) {
  int control[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0)
    fail(ErrorKind::worker, "no socket pair for a plugin's own process: {}", std::strerror(errno));
  control_ = std::make_unique<Channel>(control[0], /*takes_descriptors=*/false);
  // PR_SET_PDEATHSIG means the thread that started the process, so the thread that watches it does that.
  std::promise<void> promise;
  std::future<void> done = promise.get_future();
  std::thread([this, started = std::move(promise), program, child_end = control[1]]() mutable {
    int output = -1, handle = -1;
    try {
      start(program, child_end, output, handle);
      started.set_value();
    } catch (...) {
      started.set_exception(std::current_exception());
      return;
    }
    watch(output, handle);
  }).detach();
  done.get();
}

void Process::start(const std::filesystem::path& program, int control, int& output, int& handle) {
  int ends[2] = {-1, -1};
  try {
    if (::pipe2(ends, O_CLOEXEC) != 0) fail(ErrorKind::worker, "no pipe: {}", std::strerror(errno));
    pid_ = spawn(program, control, ends[1]);
  } catch (...) {
    for (const int end : {control, ends[0], ends[1]}) {
      if (end >= 0) ::close(end);
    }
    throw;
  }
  ::close(control);
  ::close(ends[1]);
  output = ends[0];
  ::fcntl(output, F_SETFL, O_NONBLOCK);
  handle = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));  // some C++ libraries cannot link pidfd_open
}

void Process::keep_output(const char* text, size_t size) {
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text, size);
  const std::scoped_lock lock(mutex_);
  tail_.append(text, size);
  if (tail_.size() > kMostOutput) tail_.erase(0, tail_.size() - kMostOutput);
}

// Runs on the thread that started the process, until the process has ended.
void Process::watch(int output, int handle) {
  pollfd waited[2] = {{output, POLLIN, 0}, {handle, POLLIN, 0}};
  char text[4096];
  bool running = true;
  while (running) {
    // Without a handle on the process (an old kernel) its end is noticed by its output, and by looking now and then.
    ::poll(waited, 2, handle < 0 ? 100 : -1);
    siginfo_t ended{};
    const bool look = handle < 0 || (waited[1].revents & POLLIN);
    running = !(look && ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                ended.si_pid == pid_);
    ssize_t count = 0;
    while ((count = ::read(output, text, sizeof text)) > 0) keep_output(text, static_cast<size_t>(count));
    if (count == 0) waited[0].fd = -1;
  }
  ::close(output);
  if (handle >= 0) ::close(handle);
  const std::scoped_lock lock(mutex_);
  ::kill(-pid_, SIGKILL);  // what it started itself; the number is ours until it is waited for
  int status = 0;
  ::waitpid(pid_, &status, 0);
  status_ = status;
  for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  changed_.notify_all();
}

std::unique_ptr<Channel> Process::connect() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    fail(ErrorKind::worker, "no socket pair for a plugin's own process: {}", std::strerror(errno));
  auto channel = std::make_unique<Channel>(ends[0], /*takes_descriptors=*/false);
  const std::unique_ptr<const int, void (*)(const int*)> theirs(&ends[1], [](const int* end) { ::close(*end); });
  const std::scoped_lock lock(mutex_);
  if (status_) throw Closed();
  control_->send(FrameKind::call, "", {ends[1]}, now_ns() + 10'000'000'000);
  sockets_.push_back(ends[0]);
  return channel;
}

void Process::end(const std::string& why) {
  const std::scoped_lock lock(mutex_);
  if (status_ || !why_.empty()) return;
  why_ = why;
  ::kill(-pid_, SIGKILL);
}

std::string Process::ending(std::string_view function) {
  std::unique_lock lock(mutex_);
  const auto over = [&] { return status_.has_value(); };
  if (!changed_.wait_for(lock, kEndingTakes, over) && why_.empty()) {
    why_ = "closed its connection to the engine";
    ::kill(-pid_, SIGKILL);
  }
  const bool ended = changed_.wait_for(lock, kEndingTakes, over);
  std::string text = !why_.empty() ? why_ + " and was ended" : ended ? status_text(*status_) : "is lost";
  text += fmt::format(" during {}", function);
  std::string_view tail = tail_;
  while (!tail.empty() && (tail.back() == '\n' || tail.back() == ' ')) tail.remove_suffix(1);
  if (!tail.empty()) text += fmt::format(". It last wrote:\n{}", tail);
  return text;
}

}  // namespace hexad::plugin::confined
