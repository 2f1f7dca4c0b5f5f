// The program itself, and the LibTorch that its workers load: found as the loader finds it, and never loaded here.
#include <algorithm>

#include <fmt/format.h>

#include <hexad/abi.h>

#include "app/doctor/topics.hpp"
#include "lib/base/text.hpp"

namespace hexad::doctor {
namespace {

using Names = std::vector<std::string>;

// "2.11.0, /path/libtorch_cpu.so", and another version than this program was built with.
void add_libtorch(const Build& build, const LinkedLibrary& library, Findings& found) {
  const std::string version = version_of(library.path, "torch/headeronly/version.h",
                                         Names{"TORCH_VERSION_MAJOR", "TORCH_VERSION_MINOR", "TORCH_VERSION_PATCH"});
  if (!version.empty() && version != build.libtorch)
    found.push_back({Level::problem, "libtorch",
                     fmt::format("{} is LibTorch {}, and this program was built with {}: their C++ differs",
                                 library.path, version, build.libtorch),
                     "take its folder out of LD_LIBRARY_PATH, or build anew with -DHEXAD_TORCH_DIR"});
  else
    found.push_back(
        {Level::ok, "libtorch", fmt::format("{}, {}", version.empty() ? build.libtorch : version, library.path)});
}

// A library that the CUDA half needs, with its version.
void add_cuda_library(const Linked& linked, const char* name, const char* title, const char* header, const Names& names,
                      Findings& found) {
  const LinkedLibrary* library = linked.find(name);
  if (!library || library->path.empty()) return;  // LibTorch has it inside, or it is told as one that lacks
  const std::string version = version_of(library->path, header, names);
  found.push_back(
      {Level::ok, "libtorch", fmt::format("{}{}{}, {}", title, version.empty() ? "" : " ", version, library->path)});
}

}  // namespace

Findings program(const Build& build) {
  std::string what = build.version;
  if (!build.commit.empty()) what += ", commit " + build.commit;
  what += fmt::format(", ABI {}.{}, ", HEXAD_ABI_MAJOR, HEXAD_ABI_MINOR);
  if (build.libtorch.empty())
    what += "built without LibTorch";
  else if (build.cuda.empty())
    what += fmt::format("built for CPUs with LibTorch {}", build.libtorch);
  else
    what += fmt::format("built with LibTorch {} and CUDA {} for sm_{}", build.libtorch, build.cuda,
                        joined(build.architectures, ", sm_"));
  return {{Level::ok, "hexad", what}};
}

Findings libtorch(const Build& build, const std::filesystem::path& runtime, const std::optional<Linked>& linked) {
  if (!linked && build.libtorch.empty())
    return {{Level::note, "libtorch", "this build has none: a run has one rank, and plugins without LibTorch",
             "make build (docs/dependencies.md says what it wants)"}};
  if (!linked)
    return {{Level::problem, "libtorch", fmt::format("{} is missing: workers have no LibTorch", runtime.string()),
             "make build, or install it beside the program: cmake --install BUILD --component app"}};
  if (!linked->problem.empty())
    return {{Level::problem, "libtorch", fmt::format("{} cannot be loaded: {}", runtime.string(), linked->problem),
             "see ldd; where a file is damaged: tools/setup.sh and make build"}};
  Findings found;
  for (const LinkedLibrary& library : linked->libraries)
    if (library.path.empty())
      found.push_back({Level::problem, "libtorch",
                       fmt::format("{} is not found, which {} needs", library.name, runtime.string()),
                       library.name.starts_with("libtorch") || library.name.starts_with("libc10")
                           ? "tools/setup.sh fetches LibTorch into ~/.cache/hexad; where it was moved, put its lib/ "
                             "into LD_LIBRARY_PATH"
                           : "install it (docs/dependencies.md), or put its folder into LD_LIBRARY_PATH"});
  if (const LinkedLibrary* library = linked->find("libtorch_cpu.so"); library && !library->path.empty())
    add_libtorch(build, *library, found);
  add_cuda_library(*linked, "libnccl.so", "NCCL", "nccl.h", {"NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH"}, found);
  add_cuda_library(*linked, "libcudnn.so", "cuDNN", "cudnn_version.h",
                   {"CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"}, found);
  return found;
}

}  // namespace hexad::doctor
