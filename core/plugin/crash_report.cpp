#include "core/plugin/crash_report.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace hexad::plugin {
namespace {

thread_local const CrashMark* here = nullptr;
std::atomic<const CrashMark*> newest = nullptr;

// Only what a signal handler may call.
void put(std::string_view text) {
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

void put(int64_t number) {
  char digits[24];
  size_t at = sizeof digits;
  do {
    digits[--at] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  put({digits + at, sizeof digits - at});
}

void report(int signal) {
  if (const CrashMark* mark = here ? here : newest.load()) {
    put(kCrashLine);
    put(mark->label);
    put(": ");
    put(mark->function);
    put(" at step ");
    put(mark->step);
    put("\n");
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

CrashMark::CrashMark(const std::string& label_of, std::string_view function_of, int64_t step_of)
    : label(label_of), function(function_of), step(step_of), outer_(here) {
  here = this;
  newest = this;
}

CrashMark::~CrashMark() {
  here = outer_;
  const CrashMark* self = this;
  newest.compare_exchange_strong(self, outer_);
}

void install_crash_report() {
  static unsigned char stack[64 * 1024];  // a stack overflow leaves no other
  const stack_t alternative = {stack, 0, sizeof stack};
  ::sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_handler = report;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::sigaction(signal, &action, nullptr);
}

}  // namespace hexad::plugin
