// A child process from its start to its end.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "lib/process/descriptor.hpp"

namespace hexad::process {

using Clock = std::chrono::steady_clock;

struct Exit {
  int code = 0;    // exit status
  int signal = 0;  // that killed it; 0: none did

  bool operator==(const Exit&) const = default;
};

// "exit status 3", "killed by signal 9 (Killed)".
std::string words(const Exit& exit);
// "ended with exit status 3", "was killed by signal 9 (Killed)".
std::string sentence(const Exit& exit);
// Of what waitpid says.
Exit exit_of(int wait_status);

// A child by its process id, which leads a group (start.hpp). The id is nobody else's until the child is waited for:
// that is what `wait`, `wait_until` and the destructor do. One thread at a time.
class Child {
 public:
  Child() = default;
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(Child&& from) noexcept : pid_(from.pid_), exit_(from.exit_) { from.pid_ = -1; }
  Child& operator=(Child&& from) noexcept;
  ~Child() { end(); }

  explicit operator bool() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  // Readable from the child's end on; none where the kernel is too old for it (before 5.3).
  Descriptor handle() const;
  // How it ended, or nothing while it runs. The id is the child's still.
  std::optional<Exit> peek() const;
  // SIGKILL for the child and for all in its group; nothing where it has been waited for.
  void kill_group() const;
  // Waits, and kills what it leaves in its group. Again: the same. A child that somebody else has waited for counts as
  // one that ended well.
  Exit wait();
  // The same, and nothing if it runs longer than that.
  std::optional<Exit> wait_until(Clock::time_point deadline);
  // Kills the group, and waits.
  void end();

 private:
  pid_t pid_ = -1;
  std::optional<Exit> exit_;
};

}  // namespace hexad::process
