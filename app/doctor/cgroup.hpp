// What control groups leave to this process: a container's share, or a scheduler's.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

namespace hexad::doctor {

// Nothing where no group bounds it.
struct Share {
  std::optional<double> cores = {};           // of processor time: 1.5
  std::optional<uint64_t> memory_limit = {};  // bytes
  std::optional<uint64_t> memory_left = {};   // bytes below it, with the files that the kernel would drop first
  std::optional<uint64_t> tasks = {};         // processes and threads
};

// Of the groups in root/proc/self/cgroup and all above them, each as root/sys/fs/cgroup has it: version 2, and the
// controllers of version 1. A group that cannot be seen from a container bounds nothing here.
Share read_share(const std::filesystem::path& root);

}  // namespace hexad::doctor
