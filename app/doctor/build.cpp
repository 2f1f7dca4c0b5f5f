#include "app/doctor/build.hpp"

#include <algorithm>
#include <string_view>

#include "app/doctor/small_file.hpp"

#ifndef HEXAD_BUILT_TORCH  // the build says them (app/CMakeLists.txt)
#define HEXAD_BUILT_TORCH ""
#endif
#ifndef HEXAD_BUILT_CUDA
#define HEXAD_BUILT_CUDA ""
#endif
#ifndef HEXAD_BUILT_ARCHITECTURES
#define HEXAD_BUILT_ARCHITECTURES ""
#endif

namespace hexad::doctor {
namespace {

std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    if (comma > 0) names.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return names;
}

bool runs_on(std::string_view architecture, int major, int minor) {
  const std::optional<uint64_t> number = leading_number(architecture);
  if (!number) return true;  // "all", "native"
  const int built_major = static_cast<int>(*number / 10), built_minor = static_cast<int>(*number % 10);
  const bool later = minor >= built_minor;
  const size_t digits = std::min(architecture.find_first_not_of("0123456789"), architecture.size());
  const std::string_view kind = architecture.substr(digits);
  if (kind.starts_with('a')) return major == built_major && minor == built_minor;
  if (kind.starts_with('f') || kind == "-real") return major == built_major && later;
  return major > built_major || (major == built_major && later);
}

}  // namespace

int Build::least_driver() const {
  const std::optional<uint64_t> major = leading_number(cuda);
  return !major ? 0 : *major == 13 ? 580 : *major == 12 ? 525 : 0;  // NVIDIA's table of minor version compatibility
}

Build this_build(const std::string& commit) {
  return {HEXAD_VERSION, commit, HEXAD_BUILT_TORCH, HEXAD_BUILT_CUDA, names_in(HEXAD_BUILT_ARCHITECTURES)};
}

bool has_kernels(const std::vector<std::string>& architectures, int major, int minor) {
  return std::ranges::any_of(architectures, [&](const std::string& each) { return runs_on(each, major, minor); });
}

}  // namespace hexad::doctor
