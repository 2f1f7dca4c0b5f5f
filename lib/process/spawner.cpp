#include "lib/process/spawner.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <system_error>

#include "lib/base/file/open_file.hpp"
#include "lib/process/start.hpp"

namespace hexad::process {
namespace {

constexpr size_t kMaxPacket = size_t{128} * 1024;
constexpr int kMostInput = 64 * 1024;
constexpr std::chrono::seconds kEndPatience{5};

// A packet is a list of texts, each after its length. The first one says what it is:
// "start" log input COUNT argument... name value ..., "kill" pid signal; "started" pid errno, "exited" pid code signal.
using Packet = std::vector<std::string>;

void send_packet(const Descriptor& socket, const Packet& packet) {
  std::string bytes;
  for (const std::string& text : packet) {
    const auto size = static_cast<uint32_t>(text.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += text;
  }
  if (bytes.size() > kMaxPacket)
    errno = EMSGSIZE;
  else if (::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()))
    return;
  throw std::system_error(errno, std::generic_category(),
                          "spawner: cannot send " + std::to_string(bytes.size()) + " bytes");
}

// Nothing at the end of the stream.
std::optional<Packet> receive_packet(const Descriptor& socket) {
  std::string buffer(kMaxPacket, '\0');
  ssize_t count = 0;
  do count = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
  while (count < 0 && errno == EINTR);
  if (count <= 0) return std::nullopt;
  std::string_view rest(buffer.data(), static_cast<size_t>(count));
  Packet packet;
  while (!rest.empty()) {
    uint32_t size = 0;
    std::memcpy(&size, rest.data(), sizeof size);
    packet.emplace_back(rest.substr(sizeof size, size));
    rest.remove_prefix(sizeof size + size);
  }
  return packet;
}

Packet packet_of(const SpawnRequest& request) {
  Packet packet = {"start", request.log_path, request.input, std::to_string(request.command.size())};
  packet.insert(packet.end(), request.command.begin(), request.command.end());
  for (const auto& [name, value] : request.variables) packet.push_back(name), packet.push_back(value);
  return packet;
}

SpawnRequest request_of(const Packet& packet) {
  SpawnRequest request = {.command = {}, .variables = {}, .input = packet.at(2), .log_path = packet.at(1)};
  const auto variables = packet.begin() + 4 + std::stol(packet.at(3));
  request.command.assign(packet.begin() + 4, variables);
  for (auto each = variables; each != packet.end(); each += 2) request.variables[each[0]] = each[1];
  return request;
}

ChildExit child_exit(const Packet& packet) {
  return {std::stoi(packet.at(1)), {.code = std::stoi(packet.at(2)), .signal = std::stoi(packet.at(3))}};
}

// ---- In the spawner process, which has one thread, and lives while its children do.

// In the place of a program that cannot be executed.
pid_t fork_excuse(const Setup& setup, const std::string& text) {
  return fork_here(setup, [&] {
    [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text.data(), text.size());
    return 127;
  });
}

pid_t start_child(const SpawnRequest& request) {
  auto [input, input_end] = make_pipe();
  ::fcntl(input_end.get(), F_SETPIPE_SZ, kMostInput);
  [[maybe_unused]] const ssize_t written = ::write(input_end.get(), request.input.data(), request.input.size());
  Command command = {.arguments = request.command, .variables = request.variables};
  command.setup.dies_with_us = command.setup.ignores_job_signals = true;
  command.setup.descriptors = {{input.get(), STDIN_FILENO}};
  Descriptor log;
  if (!request.log_path.empty())
    log = Descriptor(open_to_write(request.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
  if (log)
    for (const int output : {STDOUT_FILENO, STDERR_FILENO}) command.setup.descriptors.push_back({log.get(), output});
  try {
    return start(command);
  } catch (const std::system_error& error) {
    return fork_excuse(command.setup, "cannot run " + request.command[0] + ": " + error.code().message() + "\n");
  }
}

void report_exits(const Descriptor& socket, std::vector<pid_t>& children) {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    std::erase(children, pid);  // its number may soon be a stranger's
    const Exit exit = exit_of(status);
    send_packet(socket, {"exited", std::to_string(pid), std::to_string(exit.code), std::to_string(exit.signal)});
  }
}

void serve_packet(const Descriptor& socket, const Packet& packet, std::vector<pid_t>& children) {
  if (packet.at(0) == "kill") {
    ::kill(std::stoi(packet.at(1)), std::stoi(packet.at(2)));
    return;
  }
  pid_t pid = -1;
  int error = 0;
  try {
    children.push_back(pid = start_child(request_of(packet)));
  } catch (const std::system_error& cannot) {
    error = cannot.code().value();
  }
  send_packet(socket, {"started", std::to_string(pid), std::to_string(error)});
}

int run_spawner(const std::string& name, const Descriptor& socket) {
  ::prctl(PR_SET_NAME, name.c_str());
  ignore_job_signals();
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &mask, nullptr);
  const int signals = ::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  std::vector<pid_t> children;
  try {
    while (true) {
      pollfd fds[2] = {{socket.get(), POLLIN, 0}, {signals, POLLIN, 0}};
      ::poll(fds, 2, -1);
      if (fds[1].revents) {
        signalfd_siginfo drained;
        while (::read(signals, &drained, sizeof drained) > 0) continue;
        report_exits(socket, children);
      }
      if (!fds[0].revents) continue;
      const std::optional<Packet> packet = receive_packet(socket);
      if (!packet) break;
      serve_packet(socket, *packet, children);
    }
  } catch (...) {  // our parent is gone: fall through to ending the children
  }
  for (const pid_t pid : children) ::kill(-pid, SIGKILL);
  return 0;
}

}  // namespace

Spawner::Spawner(const std::string& name) {
  auto [ours, its] = make_sockets(SOCK_SEQPACKET);
  for (const int end : {ours.get(), its.get()}) {
    const int bytes = 2 * kMaxPacket;
    ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  }
  pid_ = fork_here({}, [&, &parents = ours, &socket = its] {
    parents.close();  // so that its end is seen
    return run_spawner(name, socket);
  });
  socket_ = std::move(ours);
}

Spawner::~Spawner() {
  socket_.close();
  Child spawner(pid_);  // whose end kills it: its children die with it
  spawner.wait_until(Clock::now() + kEndPatience);
}

pid_t Spawner::spawn(const SpawnRequest& request) {
  send_packet(socket_, packet_of(request));
  const Clock::time_point deadline = Clock::now() + request.patience;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waited = {socket_.get(), POLLIN, 0};
    if (::poll(&waited, 1, static_cast<int>(std::max<int64_t>(left, 0))) == 0) {
      throw std::runtime_error("cannot start " + request.command[0] + " within " +
                               std::to_string(request.patience.count()) +
                               " s: does the file system of the program or of its log answer?");
    }
    const std::optional<Packet> packet = receive_packet(socket_);
    if (!packet) break;
    if (packet->at(0) == "exited") {
      exits_.push_back(child_exit(*packet));
      continue;
    }
    const pid_t pid = std::stoi(packet->at(1));
    if (pid > 0) return pid;
    throw std::system_error(std::stoi(packet->at(2)), std::generic_category(), "cannot start " + request.command[0]);
  }
  throw std::runtime_error("the spawner process ended; cannot start " + request.command[0]);
}

void Spawner::kill(pid_t pid, int signal) {
  send_packet(socket_, {"kill", std::to_string(pid), std::to_string(signal)});
}

std::optional<ChildExit> Spawner::next_exit(int timeout_ms) {
  if (exits_.empty()) {
    pollfd fd{socket_.get(), POLLIN, 0};
    if (::poll(&fd, 1, timeout_ms) <= 0) return std::nullopt;
    const std::optional<Packet> packet = receive_packet(socket_);
    if (!packet) throw std::runtime_error("the spawner process ended");
    exits_.push_back(child_exit(*packet));
  }
  const ChildExit exit = exits_.front();
  exits_.pop_front();
  return exit;
}

}  // namespace hexad::process
