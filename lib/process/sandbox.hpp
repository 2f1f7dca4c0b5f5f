// What is kept from a program of somebody else's, by means of the kernel alone: no user, container or helper is needed.
#pragma once
#include <string>
#include <vector>

#include "lib/process/descriptor.hpp"
#include "lib/process/sandbox_filter.hpp"

namespace hexad::process {

// Every sandboxed process, and all that it starts: gains no rights by programs that have them (no_new_privs, so no
// sudo), leaves no core file, has limits, writes only below `writes` and to devices such as /dev/null (the ordinary one
// to terminals, shared memory and GPUs too), looks into no process outside the sandbox, mounts nothing (Landlock, and
// rights of root's that it loses). A program that is started (not a copy of this process) is not given the secrets of
// our environment (secret.hpp).
//
// A strict one also reads and runs only what is below `reads` and `writes` and the system's folders
// (system_folders()), has no network and reaches no server of this machine, is refused system calls by which processes
// get out (sandbox_filter.hpp), signals nobody outside, and has no right of root's but to files that are others'.
//
// Files may still be given other modes, times and attributes by their owner, wherever they are.
struct Sandbox {
  bool strict = false;
  std::vector<std::string> reads = {};     // files and folders; those that are not there count for nothing
  std::vector<std::string> writes = {};    // folders, which are read too
  std::vector<std::string> pass_env = {};  // variables that are given though they look like secrets
};

// What this kernel lets us keep from a program.
struct Kernel {
  int landlock = 0;      // its version; 0: it has none, or keeps it from us
  bool seccomp = false;  // filters of system calls
};
Kernel this_kernel();

// What `kernel` lacks for such a sandbox, and what a program may do therefore; empty where it lacks nothing.
std::string lacking(bool strict, const Kernel& kernel);

// Folders and files of the system that a program reads to run: libraries, interpreters, /proc; not /etc as a whole.
std::vector<std::string> system_folders();

// A sandbox in the kernel's own terms, made before the process that enters it. What the kernel lacks is left out.
class SandboxRules {
 public:
  SandboxRules() = default;  // of no sandbox
  // Throws std::system_error.
  SandboxRules(const Sandbox& sandbox, const Kernel& kernel);

  // For this thread and what it starts; makes system calls alone. Once. False: it cannot be; errno says why.
  bool enter() const;

 private:
  bool is_there_ = false, strict_ = false;
  Descriptor landlock_;
  Filter filter_;
};

}  // namespace hexad::process
