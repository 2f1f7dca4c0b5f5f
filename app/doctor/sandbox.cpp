// What this kernel lets a run keep from reward programs.
#include <fmt/format.h>

#include "app/doctor/topics.hpp"

namespace hexad::doctor {

Findings sandbox(const process::Kernel& kernel) {
  const std::string what =
      fmt::format("{}, {}", kernel.landlock > 0 ? fmt::format("Landlock {}", kernel.landlock) : "no Landlock",
                  kernel.seccomp ? "filters of system calls" : "no filters of system calls");
  const std::string ordinary = process::lacking(false, kernel), strict = process::lacking(true, kernel);
  const char* const mend =
      "Linux 6.12 has all of it; in a container its profile of seccomp has to let landlock_* and seccomp through";
  Findings found;
  if (!ordinary.empty())
    found.push_back({Level::note, "sandbox", fmt::format("of this kernel: {}; {}", what, ordinary), mend});
  if (!strict.empty() && strict != ordinary)
    found.push_back(
        {Level::note, "sandbox", fmt::format("env.<name>.sandbox=strict on this kernel: {}; {}", what, strict), mend});
  if (found.empty()) found.push_back({Level::ok, "sandbox", what + ": reward programs are kept in, strict ones too"});
  return found;
}

}  // namespace hexad::doctor
