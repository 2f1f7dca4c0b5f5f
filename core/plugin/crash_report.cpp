#include "core/plugin/crash_report.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <fmt/format.h>

namespace hexad::plugin {
namespace {

thread_local const CrashMark* here = nullptr;
std::atomic<const CrashMark*> newest = nullptr;

// The innermost mark of every thread that has one, for who is no signal handler.
struct Innermost {
  std::mutex mutex;
  std::map<std::thread::id, const CrashMark*> marks;
};
Innermost& innermost() {
  static auto* all = new Innermost;  // never destroyed: threads of plugins may outlive statics
  return *all;
}

void set_innermost(const CrashMark* mark) {
  const std::scoped_lock lock(innermost().mutex);
  if (mark)
    innermost().marks[std::this_thread::get_id()] = mark;
  else
    innermost().marks.erase(std::this_thread::get_id());
}

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

// The stack that a thread's handler runs on: an overflow leaves no other.
class HandlerStack {
 public:
  HandlerStack() {
    stack_t known = {};
    if (::sigaltstack(nullptr, &known) != 0 || !(known.ss_flags & SS_DISABLE)) return;  // somebody gave it one
    memory_ = std::make_unique<unsigned char[]>(kSize);
    const stack_t own = {memory_.get(), 0, kSize};
    ::sigaltstack(&own, nullptr);
  }
  ~HandlerStack() {
    const stack_t none = {nullptr, SS_DISABLE, 0};
    if (memory_) ::sigaltstack(&none, nullptr);
  }
  HandlerStack(const HandlerStack&) = delete;

 private:
  static constexpr size_t kSize = size_t{64} * 1024;
  std::unique_ptr<unsigned char[]> memory_;
};

std::atomic<bool> reports = false;

void put_line(std::string_view begin, const CrashMark& mark) {
  put(begin);
  put(mark.label);
  put(": ");
  put(mark.function);
  put(" at step ");
  put(mark.step);
  put("\n");
}

void report(int signal) {
  if (const CrashMark* mark = here ? here : newest.load()) put_line(kCrashLine, *mark);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// Whatever status the plugin gave: nothing has ended as it should.
void report_exit(int, void*) {
  constexpr int kPluginFailed = 3;
  if (!here) return;
  put_line(kExitLine, *here);
  std::fflush(nullptr);
  ::_exit(kPluginFailed);
}

}  // namespace

CrashMark::CrashMark(const std::string& label_of, std::string_view function_of, int64_t step_of)
    : label(label_of), function(function_of), step(step_of), outer_(here) {
  if (reports) {
    static thread_local const HandlerStack stack;
  }
  here = this;
  newest = this;
  set_innermost(this);
}

CrashMark::~CrashMark() {
  set_innermost(outer_);
  here = outer_;
  const CrashMark* self = this;
  newest.compare_exchange_strong(self, outer_);
}

void install_crash_report() {
  reports = true;
  struct sigaction action {};
  action.sa_handler = report;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::sigaction(signal, &action, nullptr);
  [[maybe_unused]] static const int once = ::on_exit(report_exit, nullptr);
  [[maybe_unused]] static const int quick = ::at_quick_exit([] { report_exit(0, nullptr); });
}

std::string longest_call() {
  const std::scoped_lock lock(innermost().mutex);
  const CrashMark* longest = nullptr;
  for (const auto& [thread, mark] : innermost().marks)
    if (!longest || mark->began < longest->began) longest = mark;
  if (!longest) return "";
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - longest->began;
  return fmt::format("{}: {} at step {}, for {:.1f} s", longest->label, longest->function, longest->step,
                     since.count());
}

}  // namespace hexad::plugin
