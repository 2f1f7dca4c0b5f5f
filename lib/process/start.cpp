#include "lib/process/start.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

#include "lib/process/descriptor.hpp"
#include "lib/process/secret.hpp"

extern char** environ;

namespace hexad::process {
namespace {

// All that the child needs, made before it exists: after a vfork its memory is ours, and it makes system calls alone.
struct Plan {
  explicit Plan(const Setup& child) : setup(child), moved(child.descriptors.size()) {
    for (const Handed& each : setup.descriptors) above = std::max(above, each.there + 1);
    if (setup.sandbox) rules = SandboxRules(*setup.sandbox, this_kernel());
  }
  const Setup& setup;
  pid_t parent = ::getpid();
  int above = STDERR_FILENO + 1;  // the first number above all that the child is given
  std::vector<int> moved;         // the descriptors, in the child, out of each other's way
  SandboxRules rules;
};

// Whether all were given their numbers; errno says why not.
bool take_descriptors(Plan& plan) {
  const std::vector<Handed>& handed = plan.setup.descriptors;
  for (size_t i = 0; i < handed.size(); ++i) {
    plan.moved[i] = ::fcntl(handed[i].ours, F_DUPFD_CLOEXEC, plan.above + 1);
    if (plan.moved[i] < 0) return false;
  }
  for (size_t i = 0; i < handed.size(); ++i) {
    if (::dup2(plan.moved[i], handed[i].there) < 0) return false;
  }
  for (const int fd : plan.moved) ::close(fd);
  return true;
}

// In the child. False: it cannot be what was asked for; errno says why.
bool become(Plan& plan) {
  const Setup& setup = plan.setup;
  ::setpgid(0, 0);
  if (setup.dies_with_us) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != plan.parent) ::_exit(0);  // it ended before that was set
  }
  if (setup.adopts_orphans) ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const Limit& limit : setup.limits) lower(limit);
  // Before descriptors take their numbers, of which one may be that of the rules.
  return plan.rules.enter() && take_descriptors(plan);
}

void close_all_but(const std::vector<Handed>& handed, int above) {
  for (int fd = STDERR_FILENO + 1; fd < above; ++fd) {
    bool wanted = false;
    for (const Handed& each : handed) wanted |= each.there == fd;
    if (!wanted) ::close(fd);
  }
  ::closefrom(above + 1);
}

// The kernel's call, because ::sigaction refuses the two signals that glibc keeps for itself, 32 and 33. A process that
// glibc's posix_spawn has started (every command of make) ignores both.
void reset_signals() {
  const unsigned long standard[4] = {};  // the kernel's struct sigaction: SIG_DFL, no flag, and no signal in its mask
  for (int signal = 1; signal < NSIG; ++signal) {
    ::syscall(SYS_rt_sigaction, signal, standard, nullptr, sizeof standard[3]);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// `report` hears errno, and closes when the program runs. A pipe, because not every vfork shares memory: to sanitizers
// it is a fork.
[[noreturn]] void execute(Plan& plan, int report, char* const* arguments, char* const* variables) {
  const int moved = ::fcntl(report, F_DUPFD_CLOEXEC, plan.above + 1);
  if (moved >= 0) report = moved;
  if (moved >= 0 && become(plan) && ::dup3(moved, plan.above, O_CLOEXEC) >= 0) {
    report = plan.above;
    close_all_but(plan.setup.descriptors, plan.above);
    reset_signals();
    if (plan.setup.ignores_job_signals) ignore_job_signals();
    ::execve(arguments[0], arguments, variables);
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t ignored = ::write(report, &error, sizeof error);
  ::_exit(127);
}

// vfork, because a fork copies the page tables of a process that may be large, and because posix_spawn cannot say all
// of a Setup. No handler of ours may run in the child, whose memory is ours.
pid_t spawn(Plan& plan, int report, char* const* arguments, char* const* variables) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::vfork();
  if (pid == 0) execute(plan, report, arguments, variables);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& more, const Setup& setup) {
  std::vector<std::string> kept = setup.sandbox ? secrets_of_ours(setup.sandbox->pass_env) : std::vector<std::string>();
  kept.insert(kept.end(), setup.withheld.begin(), setup.withheld.end());
  std::vector<std::string> result;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string text(*entry), name = text.substr(0, text.find('='));
    if (!more.contains(name) && std::find(kept.begin(), kept.end(), name) == kept.end()) result.push_back(text);
  }
  for (const auto& [name, value] : more) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

void ignore_job_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ}) ::signal(signal, SIG_IGN);
}

pid_t start(const Command& command) {
  std::vector<std::string> arguments = command.arguments,
                           variables = environment_with(command.variables, command.setup);
  Plan plan(command.setup);
  auto [reported, report] = make_pipe();
  const pid_t pid = spawn(plan, report.get(), pointers(arguments).data(), pointers(variables).data());
  int error = pid < 0 ? errno : 0;
  report.close();
  while (pid > 0 && ::read(reported.get(), &error, sizeof error) < 0 && errno == EINTR) continue;
  if (error == 0) return pid;
  while (pid > 0 && ::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
  throw std::system_error(error, std::generic_category(), "cannot start " + arguments[0]);
}

pid_t fork_here(const Setup& setup, const std::function<int()>& body) {
  Plan plan(setup);
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto run = [&]() noexcept { ::_exit(become(plan) ? body() : 127); };
    run();
  }
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "cannot fork");
  ::setpgid(pid, pid);  // whoever comes first: its group can be killed from now on
  return pid;
}

}  // namespace hexad::process
