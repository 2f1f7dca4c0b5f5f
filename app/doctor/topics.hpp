// What is asked: a function a topic, each from what a test can give it. `root` is the folder that /proc, /sys and /dev
// are looked for in.
#pragma once
#include <sys/resource.h>

#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/doctor/build.hpp"
#include "app/doctor/cgroup.hpp"
#include "app/doctor/finding.hpp"
#include "app/doctor/linked.hpp"
#include "app/doctor/nvml.hpp"
#include "core/manifest/discovery.hpp"
#include "lib/process/sandbox.hpp"

namespace hexad::doctor {

using Variables = std::map<std::string, std::string>;

Findings program(const Build& build);

// `cores`: those that the process may be scheduled on.
Findings processor(const std::filesystem::path& root, int cores, const Share& share);
Findings memory(const std::filesystem::path& root, const Share& share);

// `visible`: CUDA_VISIBLE_DEVICES, where it is set.
Findings gpus(const std::filesystem::path& root, const Build& build, const Driver& driver,
              const std::optional<std::string>& visible);

// `runtime`: the library that workers open, and what the loader gives to it (nothing where it is not there).
Findings libtorch(const Build& build, const std::filesystem::path& runtime, const std::optional<Linked>& linked);

// A plugin as `hexad plugin list` has it.
struct ListedPlugin {
  std::string name;    // of its manifest, or the manifest's path
  std::string state;   // "ok", "shadowed", "refused" or "not built"
  std::string reason;  // of the latter: the command that builds it
};
Findings plugins(const std::vector<plugin::Folder>& searched, const std::vector<ListedPlugin>& listed);

struct Limits {
  rlim_t files = RLIM_INFINITY;  // the hard limit: a run raises the soft one to it
  rlim_t locked = RLIM_INFINITY, processes = RLIM_INFINITY;
  bool root = false;  // whom the limit of processes does not hold for
};
Limits limits_of_ours();
Findings limits(const std::filesystem::path& root, const Limits& limits, const Share& share);

// Whether loopback serves, and ports of [low, high) are free.
Findings ports(int64_t low, int64_t high);

Findings sandbox(const process::Kernel& kernel);

// `built`: when the program's file was written.
Findings clock(std::time_t now, std::time_t built);
Findings locale(const Variables& variables);

Variables variables_of_ours();
// Those that change a run, a line each, without secrets.
Findings variables(const Variables& variables);
// What `variables` say of a launcher. Whether one has started this process is asked of our own (cluster::launched()).
Findings launcher(const Variables& variables);

}  // namespace hexad::doctor
