// What this process may have at most (ulimit), against what a run of eight ranks on one host wants.
#include <unistd.h>

#include <fmt/format.h>

#include "app/doctor/topics.hpp"
#include "app/inference/open_files.hpp"

namespace hexad::doctor {
namespace {

constexpr int kRanks = 8;
// A rank has a thread a core, and some of LibTorch's, NCCL's and the engine's beside them.
constexpr uint64_t kTasks = 1024, kTasksOfOne = 128;

rlim_t hard_limit(decltype(RLIMIT_CORE) resource) {
  rlimit both = {};
  return ::getrlimit(resource, &both) == 0 ? both.rlim_max : RLIM_INFINITY;
}

std::string number_text(uint64_t most) { return most == RLIM_INFINITY ? "unlimited" : std::to_string(most); }

Finding open_files(rlim_t most) {
  const rlim_t wanted = inference::open_files_of_run(kRanks), of_one = inference::open_files_of_run(1);
  const std::string what = fmt::format("open files {}", number_text(most));
  const char* const mend = "raise the hard limit: ulimit -Hn, limits.conf, LimitNOFILE of systemd, docker run --ulimit";
  if (most < of_one)
    return {Level::problem, "limits", fmt::format("{}, wanted {} in each process of a run", what, of_one), mend};
  if (most < wanted)
    return {Level::note, "limits", fmt::format("{}, wanted {} in each process of {} ranks", what, wanted, kRanks),
            mend};
  return {Level::ok, "limits", what};
}

Finding tasks(const Limits& limits, const Share& share) {
  uint64_t most = limits.root ? RLIM_INFINITY : limits.processes;
  const bool is_group = share.tasks && *share.tasks < most;
  if (is_group) most = *share.tasks;
  const std::string what = fmt::format("processes and threads {}{}", number_text(most), is_group ? " (pids.max)" : "");
  if (most >= kTasks) return {Level::ok, "limits", what};
  return {most < kTasksOfOne ? Level::problem : Level::note, "limits",
          fmt::format("{}, wanted {} for {} ranks", what, kTasks, kRanks),
          is_group ? "raise it: docker run --pids-limit, TasksMax of systemd" : "raise it: ulimit -u, limits.conf"};
}

}  // namespace

Limits limits_of_ours() {
  return {.files = hard_limit(RLIMIT_NOFILE),
          .locked = hard_limit(RLIMIT_MEMLOCK),
          .processes = hard_limit(RLIMIT_NPROC),
          .root = ::geteuid() == 0};
}

Findings limits(const std::filesystem::path& root, const Limits& limits, const Share& share) {
  Findings found = {open_files(limits.files), tasks(limits, share)};
  std::error_code none;
  const std::filesystem::path ports = root / "sys/class/infiniband";
  const bool has_ports = std::filesystem::is_directory(ports, none) && !std::filesystem::is_empty(ports, none);
  const std::string what =
      fmt::format("locked memory {}",
                  limits.locked == RLIM_INFINITY ? "unlimited" : size_text(static_cast<uint64_t>(limits.locked)));
  if (has_ports && limits.locked != RLIM_INFINITY)
    found.push_back({Level::note, "limits", what + ", and there is InfiniBand, for which NCCL locks its buffers",
                     "ulimit -l unlimited, LimitMEMLOCK=infinity of systemd, docker run --ulimit memlock=-1"});
  else
    found.push_back({Level::ok, "limits", what});
  return found;
}

}  // namespace hexad::doctor
