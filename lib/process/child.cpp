#include "lib/process/child.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace hexad::process {

std::string words(const Exit& exit) {
  if (exit.signal == 0) return "exit status " + std::to_string(exit.code);
  return "killed by signal " + std::to_string(exit.signal) + " (" + ::strsignal(exit.signal) + ")";
}

std::string sentence(const Exit& exit) { return (exit.signal == 0 ? "ended with " : "was ") + words(exit); }

Exit exit_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {.signal = WTERMSIG(wait_status)};
  return {.code = WEXITSTATUS(wait_status)};
}

Child& Child::operator=(Child&& from) noexcept {
  if (this != &from) {
    end();
    pid_ = std::exchange(from.pid_, -1);
    exit_ = from.exit_;
  }
  return *this;
}

Descriptor Child::handle() const {
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));  // some C++ libraries cannot link pidfd_open
}

std::optional<Exit> Child::peek() const {
  if (exit_) return exit_;
  siginfo_t how = {};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &how, WEXITED | WNOHANG | WNOWAIT) != 0)
    return errno == ECHILD ? std::optional(Exit{}) : std::nullopt;  // reaped by somebody else
  if (how.si_pid != pid_) return std::nullopt;
  return how.si_code == CLD_EXITED ? Exit{.code = how.si_status} : Exit{.signal = how.si_status};
}

void Child::kill_group() const {
  if (pid_ > 0 && !exit_) ::kill(-pid_, SIGKILL);
}

Exit Child::wait() {
  if (exit_) return *exit_;
  siginfo_t how = {};
  int found = 0, status = 0;
  do found = ::waitid(P_PID, static_cast<id_t>(pid_), &how, WEXITED | WNOWAIT);
  while (found != 0 && errno == EINTR);
  if (found == 0) {
    kill_group();
    ::waitpid(pid_, &status, 0);
  }
  exit_ = exit_of(status);
  return *exit_;
}

std::optional<Exit> Child::wait_until(Clock::time_point deadline) {
  constexpr int kLook = 2;  // ms between two looks where there is no handle
  std::optional<Descriptor> ended;
  while (!peek()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return std::nullopt;
    if (!ended) ended = handle();
    const auto most = std::min<int64_t>(left, *ended ? 1000 : kLook);
    pollfd waited = {ended->get(), POLLIN, 0};
    ::poll(&waited, 1, static_cast<int>(most));
  }
  return wait();
}

void Child::end() {
  if (pid_ <= 0 || exit_) return;
  kill_group();
  wait();
}

}  // namespace hexad::process
