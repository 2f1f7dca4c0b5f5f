#include "lib/installation/home.hpp"

#include <cstdlib>

namespace hexad::installation {

namespace fs = std::filesystem;

fs::path home() { return fs::read_symlink("/proc/self/exe").parent_path().parent_path(); }

const char* version() { return HEXAD_VERSION; }

fs::path user_folder() {
  const char* data = ::secure_getenv("XDG_DATA_HOME");
  if (data && fs::path(data).is_absolute()) return fs::path(data) / "hexad";
  const char* user = ::secure_getenv("HOME");
  return user && *user ? fs::path(user) / ".local/share/hexad" : fs::path();
}

}  // namespace hexad::installation
