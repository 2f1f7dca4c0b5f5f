#include "core/plugin/precheck.hpp"

#include <fmt/format.h>
#include <hexad/abi.h>

#include <cstdlib>
#include <filesystem>

#include "lib/base/file.hpp"
#include "lib/base/file/permissions.hpp"

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
  const fs::path folder = file.parent_path();
  fs::create_directories(folder);
  // Whatever the umask: is_verified believes no file that others could have made.
  for (const fs::path& own : {folder.parent_path(), folder}) fs::permissions(own, fs::perms::owner_all);
  write_file(file, "");
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
}

bool is_verified(const std::string& sha256) { return !insecure(file_of(sha256)); }  // one that is not there is insecure

}  // namespace hexad::plugin
