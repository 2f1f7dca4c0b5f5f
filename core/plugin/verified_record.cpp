#include "core/plugin/precheck.hpp"

#include <fmt/format.h>
#include <hexad/abi.h>

#include <cstdlib>
#include <filesystem>

#include "core/manifest/permissions.hpp"
#include "lib/base/file.hpp"

namespace hexad::plugin {
namespace {

namespace fs = std::filesystem;

fs::path file_of(const std::string& sha256) {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  const fs::path base = cache && *cache == '/' ? fs::path(cache) : fs::path(home ? home : "/") / ".cache";
  return base / "hexad/verified" / fmt::format("{}-abi{}.{}", sha256, HEXAD_ABI_MAJOR, HEXAD_ABI_MINOR);
}

}  // namespace

void record_verified(const std::string& sha256) {
  const fs::path file = file_of(sha256);
  fs::create_directories(file.parent_path());
  fs::permissions(file.parent_path(), fs::perms::owner_all);
  write_file(file, "");
}

bool is_verified(const std::string& sha256) {
  const fs::path file = file_of(sha256);
  return fs::exists(file) && !insecure(file);
}

}  // namespace hexad::plugin
