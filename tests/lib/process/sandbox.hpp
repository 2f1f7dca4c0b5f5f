// What a sandboxed script writes, on this kernel and as on an older one.
#pragma once
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include "lib/process/program_folders.hpp"
#include "lib/process/sandbox.hpp"
#include "tests/lib/process/support.hpp"
#include "tests/support/report.hpp"

namespace process_test {

// False, and noted as left out, where the kernel has no Landlock of this version.
inline bool has_landlock(int version = 1) {
  if (this_kernel().landlock >= version) return true;
  test_report::skipped("this kernel has no Landlock of version " + std::to_string(version));
  return false;
}

inline bool has_seccomp() {
  if (this_kernel().seccomp) return true;
  test_report::skipped("this kernel has no filters of system calls");
  return false;
}

inline std::string inside(const Sandbox& sandbox, const std::string& script) {
  Command command = {.arguments = {}};
  command.setup.sandbox = sandbox;
  return output_of(script, command);
}

// What `body` writes to standard output, after `rules` were entered; `body` ends the process or returns its status.
inline std::string entered(const SandboxRules& rules, const std::function<int()>& body) {
  auto [output, output_end] = make_pipe();
  const Setup setup = {.descriptors = {{output_end.get(), STDOUT_FILENO}, {output_end.get(), STDERR_FILENO}}};
  Child child(fork_here(setup, [&] { return rules.enter() ? body() : 126; }));
  output_end.close();
  std::string text = read_all(output);
  child.wait();
  return text;
}

inline std::string inside(const Sandbox& sandbox, const Kernel& kernel, const std::string& script) {
  return entered(SandboxRules(sandbox, kernel), [&] {
    ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
    return 127;
  });
}

// A variable of our environment, until the object goes.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_)
      ::setenv(name_, before_->c_str(), 1);
    else
      ::unsetenv(name_);
  }
  Variable(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

inline void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace process_test
