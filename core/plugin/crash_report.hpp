// Whose code a process was in when it crashed, or is in when it hangs.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace hexad::plugin {

// Marks this thread, for the life of the object, as being in a plugin's function. Marks nest.
class CrashMark {
 public:
  // All borrowed. `label` is LoadedPlugin::label().
  CrashMark(const std::string& label, std::string_view function, int64_t step);
  ~CrashMark();
  CrashMark(const CrashMark&) = delete;
  CrashMark& operator=(const CrashMark&) = delete;

  const std::string& label;
  const std::string_view function;
  const int64_t step;
  const std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();

 private:
  const CrashMark* outer_;
};

// The line that a crash leaves on stderr begins so: "hexad: crashed in loss 'a' 1.0.0 (/path, sha256 ...): compute at
// step 812". A thread that a plugin started has no mark: the newest mark of any thread is named for it.
inline constexpr std::string_view kCrashLine = "hexad: crashed in ";
// So begins the line where a plugin's function has called exit() or quick_exit().
inline constexpr std::string_view kExitLine = "hexad: the program was ended by exit() in ";

// From now on SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT in a plugin's function leave that line; then they take their
// course. exit() there leaves the other, and status 3.
void install_crash_report();

// Of the functions that threads of this process are in, of each the innermost, the one that has taken longest:
// "loss 'a' 1.0.0 (/path, sha256 ...): compute at step 812, for 5.0 s". Empty: there is none. Any thread.
std::string longest_call();

}  // namespace hexad::plugin
