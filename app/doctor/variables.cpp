// Environment variables that change a run, and what a launcher has left there.
#include <unistd.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "app/doctor/small_file.hpp"
#include "app/doctor/topics.hpp"
#include "core/cluster/process/launch.hpp"
#include "lib/base/said/secret.hpp"
#include "lib/process/secret.hpp"

namespace hexad::doctor {
namespace {

constexpr std::array<std::string_view, 14> kBeginnings = {"OMP_",  "GOMP_",   "KMP_",  "MKL_",    "NCCL_",
                                                          "GLOO_", "TORCH_",  "ATEN_", "HF_",     "HEXAD_",
                                                          "DNNL_", "ONEDNN_", "UCX_",  "PYTORCH_"};
constexpr std::array<std::string_view, 18> kNames = {"CUDA_VISIBLE_DEVICES",
                                                     "CUDA_DEVICE_ORDER",
                                                     "CUDA_LAUNCH_BLOCKING",
                                                     "CUDA_MODULE_LOADING",
                                                     "CUDA_DEVICE_MAX_CONNECTIONS",
                                                     "CUBLAS_WORKSPACE_CONFIG",
                                                     "NVIDIA_VISIBLE_DEVICES",
                                                     "NVIDIA_TF32_OVERRIDE",
                                                     "LD_LIBRARY_PATH",
                                                     "LD_PRELOAD",
                                                     "MALLOC_ARENA_MAX",
                                                     "TMPDIR",
                                                     "XDG_CACHE_HOME",
                                                     "NO_COLOR",
                                                     "http_proxy",
                                                     "https_proxy",
                                                     "HTTPS_PROXY",
                                                     "no_proxy"};

bool changes_runs(std::string_view name) {
  return std::ranges::find(kNames, name) != kNames.end() ||
         std::ranges::any_of(kBeginnings, [&](std::string_view each) { return name.starts_with(each); });
}

std::string shown(const std::string& name, const std::string& value) {
  if (names_secret(name) || process::is_secret(name, "")) return std::string(kMasked);
  return without_url_secrets(value);
}

bool is_on(const Variables& variables, const char* name) {
  const auto found = variables.find(name);
  return found != variables.end() && !found->second.empty() && found->second != "0";
}

}  // namespace

Variables variables_of_ours() {
  Variables found;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    const size_t equal = text.find('=');
    if (equal != text.npos) found.emplace(text.substr(0, equal), text.substr(equal + 1));
  }
  return found;
}

Findings variables(const Variables& variables) {
  Findings found;
  for (const auto& [name, value] : variables)
    if (changes_runs(name)) found.push_back({Level::ok, "variable", fmt::format("{}={}", name, shown(name, value))});
  if (is_on(variables, "CUDA_LAUNCH_BLOCKING"))
    found.push_back({Level::note, "variable",
                     "CUDA_LAUNCH_BLOCKING has every kernel waited for: steps are many times "
                     "slower, and CUDA graphs cannot be made",
                     "unset CUDA_LAUNCH_BLOCKING, unless you look for a kernel that fails"});
  return found;
}

Findings launcher(const Variables& variables) {
  try {
    if (const std::optional<cluster::Launch> launch = cluster::launched())
      return {{Level::ok, "launcher",
               fmt::format("{}: rank {} of {}, {} on this host", launch->launcher, launch->rank, launch->world,
                           launch->local_world)}};
  } catch (const Error& error) {
    return {{Level::problem, "launcher", error.what(),
             "unset the launcher's variables, or let it start hexad train (docs/launch.md)"}};
  }
  const auto rank = variables.find("RANK"), world = variables.find("WORLD_SIZE");
  const bool is_alone = world != variables.end() && leading_number(world->second).value_or(0) == 1;
  if ((rank == variables.end() && world == variables.end()) || is_alone)
    return {{Level::ok, "launcher", "none: hexad train starts the ranks of this host"}};
  const std::string_view what = rank == variables.end()    ? "WORLD_SIZE is set, and RANK is not"
                                : world == variables.end() ? "RANK is set, and WORLD_SIZE is not"
                                                           : "RANK and WORLD_SIZE are set, and LOCAL_WORLD_SIZE is not";
  return {{Level::note, "launcher",
           fmt::format("{}: no launcher is seen, and each hexad train starts all ranks itself", what),
           "unset it, or start hexad train by torchrun, srun or mpirun (docs/launch.md)"}};
}

}  // namespace hexad::doctor
