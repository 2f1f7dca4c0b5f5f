// A function in a process of its own, with limits: whatever it does, the caller goes on.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace hexad::plugin {

struct ChildResult {
  std::string answer;  // what `work` returned; empty if it did not get that far
  std::string
      problem;         // "crashed with SIGSEGV", "did not end within 60 s", "ended the process with code 3"; else empty
  std::string output;  // the last lines that it wrote to stdout and stderr
};

struct ChildLimits {
  int timeout_s = 60;
  int64_t memory_bytes = int64_t{16} << 30;
  bool gpu =
      false;  // limits what is written instead of address space, of which CUDA reserves more than there is memory
};

// Forks, so the caller must have no threads that hold locks which `work` needs, and no CUDA context. The child ends
// when this process does, however that ends; all that it has started does, unless SIGKILL ends this process. Throws
// Error(internal) if it cannot.
ChildResult run_in_child(const std::function<std::string()>& work, const ChildLimits& limits);

}  // namespace hexad::plugin
