#include "app/verify/child.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <system_error>

#include "lib/base/error.hpp"
#include "lib/base/utf8.hpp"
#include "lib/process/child.hpp"
#include "lib/process/start.hpp"

namespace hexad::plugin {
namespace {

using process::Clock;
using process::Descriptor;
constexpr size_t kMostOutput = 2000;
// A sanitizer's tables alone reserve terabytes of address space.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsMemory = false;
#else
constexpr bool kLimitsMemory = true;
#endif

process::Setup setup_of(const ChildLimits& limits, const Descriptor& output) {
  process::Setup setup = {.descriptors = {{output.get(), STDOUT_FILENO}, {output.get(), STDERR_FILENO}},
                          .limits = {{RLIMIT_CORE, 0}},
                          .dies_with_us = true};
  if (kLimitsMemory)
    setup.limits.push_back({limits.gpu ? RLIMIT_DATA : RLIMIT_AS, static_cast<rlim_t>(limits.memory_bytes)});
  return setup;
}

// The group of the child that runs; 0: none does.
std::atomic<pid_t> running_group = 0;

void end_with_child(int signal) {
  if (const pid_t group = running_group) ::kill(-group, SIGKILL);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// As long as it lives, a signal that ends this process ends the child before, with all that the child has started. A
// signal that is ignored stays so.
class EndsTogether {
 public:
  // Signals wait until `of` says which child it is.
  EndsTogether() {
    struct sigaction action {};
    action.sa_handler = end_with_child;
    sigset_t all;
    sigemptyset(&all);
    for (const int signal : kSignals) sigaddset(&all, signal);
    ::sigprocmask(SIG_BLOCK, &all, &mask_before_);
    for (size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
    }
  }
  ~EndsTogether() {
    running_group = 0;
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  EndsTogether(const EndsTogether&) = delete;

  // 0, in the child itself: none.
  void of(pid_t group) const {
    running_group = group;
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  }

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  std::array<struct sigaction, kSignals.size()> before_{};
  sigset_t mask_before_{};
};

int be_child(const std::function<std::string()>& work, int answer) {
  std::string text;
  try {
    text = work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 125;
  } catch (...) {
    return 125;
  }
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::write(answer, text.data() + sent, text.size() - sent);
    if (count <= 0) return 126;
    sent += static_cast<size_t>(count);
  }
  return 0;
}

// Appends what is there; false at the end of the stream.
bool drain(int descriptor, std::string& text) {
  char buffer[65536];
  const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
  if (count > 0) text.append(buffer, static_cast<size_t>(count));
  return count > 0 || (count < 0 && errno == EINTR);
}

// Reads both pipes until the child has closed its answer or the time is over; false then.
bool collect(const Descriptor& answer, const Descriptor& output, ChildResult& result, Clock::time_point end) {
  pollfd fds[2] = {{answer.get(), POLLIN, 0}, {output.get(), POLLIN, 0}};
  while (fds[0].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return false;
    if (::poll(fds, 2, static_cast<int>(std::min<int64_t>(left, 1000))) < 0 && errno != EINTR) return false;
    if ((fds[0].revents & (POLLIN | POLLHUP)) && !drain(fds[0].fd, result.answer)) fds[0].fd = -1;
    if ((fds[1].revents & (POLLIN | POLLHUP)) && !drain(fds[1].fd, result.output)) fds[1].fd = -1;
  }
  return true;
}

std::string problem_of(const std::optional<process::Exit>& exit, int timeout_s) {
  if (!exit) return fmt::format("did not end within {} s", timeout_s);
  if (exit->signal != 0) return fmt::format("crashed with SIG{}", ::sigabbrev_np(exit->signal));
  if (exit->code != 0) return fmt::format("ended the process with code {}", exit->code);
  return "";
}

ChildResult run(const std::function<std::string()>& work, const ChildLimits& limits) {
  auto [answer, answer_end] = process::make_pipe();
  auto [output, output_end] = process::make_pipe();
  const EndsTogether guard;
  process::Child child(process::fork_here(setup_of(limits, output_end), [&, end = answer_end.get()] {
    guard.of(0);
    return be_child(work, end);
  }));
  guard.of(child.pid());
  answer_end.close();
  output_end.close();
  ChildResult result;
  const auto end = Clock::now() + std::chrono::seconds(limits.timeout_s);
  std::optional<process::Exit> exit;
  if (collect(answer, output, result, end)) exit = child.wait_until(end);
  child.end();
  output.never_wait();  // a helper that left the group may hold its other end
  while (drain(output.get(), result.output)) continue;
  result.problem = problem_of(exit, limits.timeout_s);
  if (result.problem.empty() && result.answer.empty()) result.problem = "ended the process before the level was over";
  result.output = utf8_back(result.output, kMostOutput);
  return result;
}

}  // namespace

ChildResult run_in_child(const std::function<std::string()>& work, const ChildLimits& limits) {
  try {
    return run(work, limits);
  } catch (const std::system_error& error) {
    fail(ErrorKind::internal, "verify: {}", error.what());
  }
}

}  // namespace hexad::plugin
