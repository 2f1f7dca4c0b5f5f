#include "core/plugin/precheck.hpp"

#include <gnu/libc-version.h>

#include <cstring>
#include <mutex>
#include <tuple>

#include <spdlog/spdlog.h>

#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"
#include "lib/elf/links.hpp"

namespace hexad::plugin {
namespace {

namespace fs = std::filesystem;

#if defined(__x86_64__)
constexpr const char* kArch = "x86_64-linux-gnu";
#else
constexpr const char* kArch = "aarch64-linux-gnu";
#endif

// The LibTorch that is in this process, by a plugin that needed it; "" if none.
std::string& libtorch_in_process() {
  static std::string* version = new std::string;
  return *version;
}

void check_built(const Candidate& candidate, const std::string& path) {
  const Manifest& manifest = *candidate.manifest;
  if (is_unbuilt(candidate)) {
    fail(ErrorKind::plugin, "{} is not built: its library {} is not there; {}", manifest.name, path, manifest.build);
  }
  if (manifest.sha256.empty()) {
    fail(ErrorKind::plugin, "{}: its manifest {} has neither sha256 nor size of it; {}", path,
         candidate.manifest_path.string(), manifest.build);
  }
}

void check_abi(const Manifest& manifest, const std::string& path) {
  if (manifest.abi_major != HEXAD_ABI_MAJOR) {
    fail(ErrorKind::plugin, "{}: built for ABI {}, this engine supports {}. Rebuild it with this engine's SDK", path,
         manifest.abi_major, HEXAD_ABI_MAJOR);
  }
  if (manifest.min_host_minor > HEXAD_ABI_MINOR) {
    fail(ErrorKind::plugin,
         "{}: needs host ABI {}.{}, this engine provides {}.{}. Upgrade the engine or rebuild with "
         "-DHEXAD_TARGET_MINOR={}",
         path, HEXAD_ABI_MAJOR, manifest.min_host_minor, HEXAD_ABI_MAJOR, HEXAD_ABI_MINOR, HEXAD_ABI_MINOR);
  }
  if (manifest.arch != kArch) {
    fail(ErrorKind::plugin, "{}: built for {}, this engine runs on {}", path, manifest.arch, kArch);
  }
}

[[noreturn]] void refuse_library(const std::string& file, const char* what, int reason) {
  fail(ErrorKind::plugin, "{}: {}: {}. Its manifest names it", file, what, std::strerror(reason));
}

// `problem`: what others could have changed, if anything.
void check_secure(const std::optional<std::string>& problem, const Options& options, const std::string& path) {
  if (!problem) return;
  if (!options.allow_insecure_dirs) {
    fail(ErrorKind::plugin,
         "{}: refused, others could have changed it: {}. Mend the mode or owner, or set plugins.allow_insecure_dirs",
         path, *problem);
  }
  spdlog::warn("{}: loaded although others could have changed it: {} (plugins.allow_insecure_dirs)", path, *problem);
}

void check_place(const Candidate& candidate, const ResolvedFile& file, const Options& options,
                 const std::string& path) {
  if (file.path().parent_path() != fs::canonical(candidate.manifest_path).parent_path()) {
    fail(ErrorKind::plugin, "{}: is a link to {}, outside of its manifest's directory", path, file.path().string());
  }
  check_secure(file.insecure(), options, path);
  if (candidate.insecure != file.insecure()) check_secure(candidate.insecure, options, path);
}

void check_pin(const Manifest& manifest, const Options& options, const std::string& path) {
  if (options.pin.empty()) return;
  const auto pin = options.pin.find(manifest.name);
  if (pin == options.pin.end()) {
    fail(ErrorKind::plugin, "{}: '{}' is not listed in plugins.pin, and nothing unlisted loads", path, manifest.name);
  }
  const std::string digest = "sha256:" + manifest.sha256;
  if (pin->second != digest) {
    fail(ErrorKind::plugin, "{}: plugins.pin.{} is {}, the plugin has {}", path, manifest.name, pin->second, digest);
  }
}

void check_verified(const Manifest& manifest, const Options& options, const std::string& path) {
  if (!options.require_verified || is_verified(manifest.sha256)) return;
  fail(ErrorKind::plugin,
       "{0}: has not passed the conformance kit on this machine, which plugins.require_verified wants. Run: hexad "
       "plugin verify {0}",
       path);
}

void check_size(const Manifest& manifest, const ResolvedFile& file, const std::string& path) {
  if (file.size() == manifest.size) return;
  fail(ErrorKind::plugin, "{}: {} bytes, manifest says {} (sha256 {}...); copy incomplete on this host?", path,
       file.size(), manifest.size, manifest.sha256.substr(0, 12));
}

std::vector<std::byte> read_library(const ResolvedFile& file, const std::string& path) {
  std::vector<std::byte> bytes(file.size());
  if (!file.read(bytes)) fail(ErrorKind::plugin, "{}: has become shorter while it was read", path);
  return bytes;
}

std::string without_build(const std::string& version) { return version.substr(0, version.find('+')); }

// "2.36" as (2, 36).
std::pair<int, int> major_minor(const std::string& version) {
  const size_t dot = version.find('.');
  return {std::atoi(version.c_str()), dot == std::string::npos ? 0 : std::atoi(version.c_str() + dot + 1)};
}

void check_requirements(const Manifest& manifest, const std::string& path, const hexad_runtime* runtime,
                        bool own_process) {
  for (const auto& [what, wanted] : manifest.requirements) {
    if (own_process && what != "glibc") continue;
    if (what == "libtorch") {
      const std::string here = runtime ? runtime->libtorch_version() : libtorch_in_process();
      if (!here.empty() && without_build(here) != without_build(wanted)) {
        fail(ErrorKind::plugin,
             "{}: built with LibTorch {}, this process has {}. Rebuild it with {}, or give it a worker of its "
             "own (a loss or generator: plugins.own_process)",
             path, wanted, here, without_build(here));
      }
    } else if (what == "cuda") {
      const std::string here = runtime ? runtime->cuda_version() : "";
      if (!here.empty() && major_minor(here) != major_minor(wanted)) {
        fail(ErrorKind::plugin, "{}: built with CUDA {}, this process has {}. Rebuild it with CUDA {}", path, wanted,
             here, here);
      }
    } else if (what == "glibc") {
      if (major_minor(gnu_get_libc_version()) < major_minor(wanted)) {
        fail(ErrorKind::plugin, "{}: needs glibc {}, this machine has {}", path, wanted, gnu_get_libc_version());
      }
    }
  }
}

}  // namespace

bool is_unbuilt(const Candidate& candidate) {
  std::error_code error;
  return candidate.manifest->sha256.empty() && !fs::exists(candidate.library(), error);
}

void check_exports(const elf::Info& info, const std::string& path) {
  constexpr std::string_view kQuery = "hexad_plugin_query_v";
  bool found = false;
  std::string others, stray;
  for (const std::string& name : info.exports) {
    if (name == "hexad_plugin_query_v1") {
      found = true;
    } else if (name.starts_with(kQuery)) {
      others = name;
    } else if (name.starts_with("hexad_")) {
      stray = name;
    }
  }
  if (!found && !others.empty()) {
    fail(ErrorKind::plugin,
         "{}: not a hexad plugin for this engine (no hexad_plugin_query_v1; it exports {}: built for ABI {}, this "
         "engine supports 1)",
         path, others, others.substr(kQuery.size()));
  }
  if (!found) fail(ErrorKind::plugin, "{}: not a hexad plugin (it does not export hexad_plugin_query_v1)", path);
  if (!stray.empty()) {
    fail(ErrorKind::plugin,
         "{}: exports {} beside hexad_plugin_query_v1, the one symbol that a plugin may. Build it with "
         "hexad_add_plugin, which hides the rest",
         path, stray);
  }
}

ResolvedFile check_manifest(const Candidate& candidate, const Options& options) {
  const Manifest& manifest = *candidate.manifest;
  const std::string path = candidate.library().string();
  check_built(candidate, path);
  check_abi(manifest, path);
  ResolvedFile file(path, refuse_library, candidate.trusted);
  check_place(candidate, file, options, path);
  check_pin(manifest, options, path);
  check_size(manifest, file, path);
  check_verified(manifest, options, path);
  return file;
}

ResolvedFile check_before_load(const Candidate& candidate, const Options& options, const hexad_runtime* runtime,
                               bool own_process) {
  const Manifest& manifest = *candidate.manifest;
  const std::string path = candidate.library().string();
  ResolvedFile file = check_manifest(candidate, options);
  trace("{}: sha256 and ELF", path);
  const std::vector<std::byte> bytes = read_library(file, path);
  if (const std::string digest = sha256_hex(bytes); digest != manifest.sha256) {
    fail(ErrorKind::plugin, "{}: sha256 {}, manifest says {}; another build, or a damaged copy?", path, digest,
         manifest.sha256);
  }
  check_exports(elf::read(bytes, path), path);
  if (!candidate.trusted) check_secure(elf::insecure_needed(file), options, path);
  check_requirements(manifest, path, runtime, own_process);
  return file;
}

void note_loaded(const Manifest& manifest) {
  const auto libtorch = manifest.requirements.find("libtorch");
  if (libtorch != manifest.requirements.end()) libtorch_in_process() = libtorch->second;
}

}  // namespace hexad::plugin
