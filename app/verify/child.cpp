#include "app/verify/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>

#include "lib/base/error.hpp"

namespace hexad::plugin {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kMostOutput = 2000;
// A sanitizer's tables alone reserve terabytes of address space.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsMemory = false;
#else
constexpr bool kLimitsMemory = true;
#endif

struct Pipe {
  Pipe() {
    if (::pipe2(ends, O_CLOEXEC) != 0)
      fail(ErrorKind::internal, "verify: cannot make a pipe: {}", std::strerror(errno));
  }
  ~Pipe() {
    for (int end : ends) {
      if (end >= 0) ::close(end);
    }
  }
  void close_end(int index) { ::close(std::exchange(ends[index], -1)); }
  int ends[2];
};

[[noreturn]] void be_child(const std::function<std::string()>& work, const Pipe& answer, const Pipe& output,
                           const ChildLimits& limits) {
  const auto bytes = static_cast<rlim_t>(limits.memory_bytes);
  const rlimit no_core = {0, 0}, memory = {bytes, bytes};
  ::setrlimit(RLIMIT_CORE, &no_core);
  if (kLimitsMemory) ::setrlimit(limits.gpu ? RLIMIT_DATA : RLIMIT_AS, &memory);
  ::setpgid(0, 0);
  ::dup2(output.ends[1], STDOUT_FILENO);
  ::dup2(output.ends[1], STDERR_FILENO);
  std::string text;
  try {
    text = work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    ::_exit(125);
  } catch (...) {
    ::_exit(125);
  }
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::write(answer.ends[1], text.data() + sent, text.size() - sent);
    if (count <= 0) ::_exit(126);
    sent += static_cast<size_t>(count);
  }
  ::_exit(0);
}

// Appends what is there; false at the end of the stream.
bool drain(int descriptor, std::string& text) {
  char buffer[65536];
  const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
  if (count > 0) text.append(buffer, static_cast<size_t>(count));
  return count > 0 || (count < 0 && errno == EINTR);
}

// Reads both pipes until the child has closed its answer or the time is over; false then.
bool collect(Pipe& answer, Pipe& output, ChildResult& result, Clock::time_point end) {
  pollfd fds[2] = {{answer.ends[0], POLLIN, 0}, {output.ends[0], POLLIN, 0}};
  while (fds[0].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    if (::poll(fds, 2, static_cast<int>(std::min<int64_t>(left, 1000))) < 0 && errno != EINTR) return false;
    if ((fds[0].revents & (POLLIN | POLLHUP)) && !drain(fds[0].fd, result.answer)) fds[0].fd = -1;
    if ((fds[1].revents & (POLLIN | POLLHUP)) && !drain(fds[1].fd, result.output)) fds[1].fd = -1;
  }
  return true;
}

std::string problem_of(int status, bool in_time, int timeout_s) {
  if (!in_time) return fmt::format("did not end within {} s", timeout_s);
  if (WIFSIGNALED(status)) return fmt::format("crashed with SIG{}", ::sigabbrev_np(WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) return fmt::format("ended the process with code {}", WEXITSTATUS(status));
  return "";
}

}  // namespace

ChildResult run_in_child(const std::function<std::string()>& work, const ChildLimits& limits) {
  Pipe answer, output;
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) fail(ErrorKind::internal, "verify: cannot fork: {}", std::strerror(errno));
  if (child == 0) be_child(work, answer, output, limits);
  answer.close_end(1);
  output.close_end(1);
  ChildResult result;
  const bool in_time = collect(answer, output, result, Clock::now() + std::chrono::seconds(limits.timeout_s));
  if (!in_time) ::kill(-child, SIGKILL), ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  while (drain(output.ends[0], result.output)) {
  }
  result.problem = problem_of(status, in_time, limits.timeout_s);
  if (result.problem.empty() && result.answer.empty()) result.problem = "ended the process before the level was over";
  if (result.output.size() > kMostOutput) result.output.erase(0, result.output.size() - kMostOutput);
  return result;
}

}  // namespace hexad::plugin
