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

// Forks, so the caller must have no threads that hold locks which `work` needs. Throws Error(internal) if it cannot.
ChildResult run_in_child(const std::function<std::string()>& work, int timeout_s, int64_t memory_bytes);

}  // namespace hexad::plugin
