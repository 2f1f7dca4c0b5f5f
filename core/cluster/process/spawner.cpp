#include "core/cluster/process/spawner.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"

extern char** environ;

namespace hexad::cluster {
namespace {

using nlohmann::json;

constexpr size_t kMaxPacket = 128 * 1024;

void send_packet(int fd, const json& value) {
  const std::string text = json_text(value);
  if (::send(fd, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
    fail(ErrorKind::worker, "spawner: cannot send {} bytes: {}", text.size(), std::strerror(errno));
  }
}

// Empty at end of file.
std::optional<json> receive_packet(int fd) {
  std::string buffer(kMaxPacket, '\0');
  ssize_t size = 0;
  do size = ::recv(fd, buffer.data(), buffer.size(), 0);
  while (size < 0 && errno == EINTR);
  if (size <= 0) return std::nullopt;
  return parse_json<json>({buffer.data(), static_cast<size_t>(size)});
}

// ---- In the child, between fork and exec.

[[noreturn]] void become(const json& request, int input_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);  // Ctrl-C on the terminal reaches the controller alone, which ends its workers in order
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(input_fd, STDIN_FILENO);
  const std::string log_path = request.at("log");
  if (!log_path.empty()) {
    const int log = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log >= 0) ::dup2(log, STDOUT_FILENO), ::dup2(log, STDERR_FILENO);
  }
  for (const auto& [name, value] : request.at("env").items())
    ::setenv(name.c_str(), value.get<std::string>().c_str(), 1);
  const auto command = request.at("command").get<std::vector<std::string>>();
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  const std::string text = fmt::format("cannot run {}: {}\n", command[0], std::strerror(errno));
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(127);
}

// ---- In the spawner process.

pid_t start_child(const json& request) {
  int input[2];
  if (::pipe2(input, O_CLOEXEC) != 0) return -1;
  const std::string text = request.at("input");
  ::fcntl(input[1], F_SETPIPE_SZ, 64 * 1024);
  [[maybe_unused]] const ssize_t written = ::write(input[1], text.data(), text.size());
  const pid_t pid = ::fork();
  if (pid == 0) become(request, input[0]);
  ::close(input[0]);
  ::close(input[1]);
  return pid;
}

void report_exits(int socket, std::vector<pid_t>& children) {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    std::erase(children, pid);  // its number may soon be a stranger's
    send_packet(socket, {{"exited", pid}, {"status", WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status)}});
  }
}

[[noreturn]] void run_spawner(int socket) {
  ::prctl(PR_SET_NAME, "hexad-spawner");
  ::setpgid(0, 0);
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &mask, nullptr);
  const int signals = ::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  std::vector<pid_t> children;
  try {
    while (true) {
      pollfd fds[2] = {{socket, POLLIN, 0}, {signals, POLLIN, 0}};
      ::poll(fds, 2, -1);
      if (fds[1].revents) {
        signalfd_siginfo drained;
        while (::read(signals, &drained, sizeof drained) > 0) {
        }
        report_exits(socket, children);
      }
      if (!fds[0].revents) continue;
      const std::optional<json> packet = receive_packet(socket);
      if (!packet) break;
      if (packet->contains("kill")) {
        ::kill(packet->at("kill").get<pid_t>(), packet->at("signal").get<int>());
        continue;
      }
      const pid_t pid = start_child(*packet);
      if (pid > 0) children.push_back(pid);
      send_packet(socket, {{"started", pid}, {"errno", pid > 0 ? 0 : errno}});
    }
  } catch (...) {  // our parent is gone: fall through to ending the children
  }
  for (const pid_t pid : children) ::kill(-pid, SIGKILL);
  ::_exit(0);
}

}  // namespace

Spawner::Spawner() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    fail(ErrorKind::worker, "spawner: no socket pair: {}", std::strerror(errno));
  }
  for (const int end : ends) {
    const int bytes = 2 * kMaxPacket;
    ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  }
  pid_ = ::fork();
  if (pid_ < 0) fail(ErrorKind::worker, "spawner: cannot fork: {}", std::strerror(errno));
  if (pid_ == 0) {
    ::close(ends[0]);
    run_spawner(ends[1]);
  }
  ::close(ends[1]);
  socket_ = ends[0];
}

Spawner::~Spawner() {
  ::close(socket_);
  ::waitpid(pid_, nullptr, 0);
}

pid_t Spawner::spawn(const SpawnRequest& request) {
  send_packet(
      socket_,
      {{"command", request.command}, {"env", request.variables}, {"input", request.input}, {"log", request.log_path}});
  while (const std::optional<json> packet = receive_packet(socket_)) {
    if (packet->contains("exited")) {
      exits_.push_back({packet->at("exited").get<pid_t>(), packet->at("status").get<int>()});
      continue;
    }
    const auto pid = packet->at("started").get<pid_t>();
    if (pid <= 0)
      fail(ErrorKind::worker, "cannot start {}: {}", request.command[0], std::strerror(packet->at("errno").get<int>()));
    return pid;
  }
  fail(ErrorKind::worker, "the spawner process ended; cannot start {}", request.command[0]);
}

void Spawner::kill(pid_t pid, int signal) { send_packet(socket_, {{"kill", pid}, {"signal", signal}}); }

std::optional<ChildExit> Spawner::next_exit(int timeout_ms) {
  if (exits_.empty()) {
    pollfd fd{socket_, POLLIN, 0};
    if (::poll(&fd, 1, timeout_ms) <= 0) return std::nullopt;
    const std::optional<json> packet = receive_packet(socket_);
    if (!packet) fail(ErrorKind::worker, "the spawner process ended");
    exits_.push_back({packet->at("exited").get<pid_t>(), packet->at("status").get<int>()});
  }
  const ChildExit exit = exits_.front();
  exits_.erase(exits_.begin());
  return exit;
}

std::string describe_exit(int status) {
  if (status < 0) return fmt::format("killed by signal {} ({})", -status, ::strsignal(-status));
  return fmt::format("exit status {}", status);
}

}  // namespace hexad::cluster
