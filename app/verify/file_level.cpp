#include "app/verify/file_level.hpp"

#include "core/plugin/precheck.hpp"
#include "lib/base/error.hpp"
#include "lib/elf/elf.hpp"

namespace hexad::plugin {
namespace {

// Libraries that every machine has, or that come with what the manifest declares.
bool is_expected(const std::string& library, const Manifest& manifest) {
  const auto begins = [&](std::initializer_list<std::string_view> names) {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return library.starts_with(name); });
  };
  if (begins({"libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so", "libstdc++.so", "libgcc_s.so", "ld-linux",
              "libgomp.so"}))
    return true;
  const bool cuda = std::find(manifest.memory.begin(), manifest.memory.end(), "cuda") != manifest.memory.end() ||
                    manifest.requirements.contains("cuda");
  if (cuda && begins({"libcuda", "libcublas", "libnccl", "libnvrtc", "libnvToolsExt"})) return true;
  const bool torch = manifest.requirements.contains("libtorch");
  return torch && begins({"libtorch", "libc10", "libhexad_modeling", "libcudart", "libcupti", "libnccl"});
}

void check_portability(const elf::Info& elf, const Manifest& manifest, verify::Findings& findings) {
  for (const std::string& library : elf.needed) {
    findings.prefer(is_expected(library, manifest), "needed libraries",
                    library + " is not on every machine: link it statically, or declare what brings it (requires)");
  }
  for (const std::string& path : elf.run_paths) {
    findings.prefer(path.starts_with("$ORIGIN"), "run path",
                    path + " is a path of the machine that built it; use $ORIGIN");
  }
  findings.prefer(elf.bind_now, "binding",
                  "symbols are bound lazily: a missing one shows in the middle of a run. Link with -Wl,-z,now");
  findings.prefer(elf.has_build_id, "build id",
                  "none, so a crash report cannot name this build. Link with -Wl,--build-id");
}

}  // namespace

bool check_file(const Candidate& candidate, const Options& options, verify::Findings& findings) {
  if (!findings.expect(candidate.problem.empty(), "manifest", candidate.problem)) return false;
  try {
    const ResolvedFile file = check_before_load(candidate, options, nullptr);
    std::vector<std::byte> bytes(file.size());
    if (!file.read(bytes)) fail(ErrorKind::plugin, "{}: has become shorter", file.path().string());
    check_portability(elf::read(bytes, candidate.library().string()), *candidate.manifest, findings);
    return true;
  } catch (const Error& error) {
    return findings.expect(false, "file", error.what());
  }
}

}  // namespace hexad::plugin
