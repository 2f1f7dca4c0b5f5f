#include "lib/table/arrow_library.hpp"

#include <dlfcn.h>

#include "lib/base/error.hpp"
#include "lib/installation/home.hpp"
#include "lib/installation/wheel.hpp"

namespace hexad::table {

namespace fs = std::filesystem;

const hexad_arrow_interface& load_arrow(const fs::path& library, const fs::path& file) {
  constexpr const char* kInstall =
      "tools/setup.sh installs it (of the wheel pyarrow, without Python); build again after that. Or make JSONL of the "
      "file with Python";
  std::error_code unreadable;
  if (!fs::exists(library, unreadable))
    fail(ErrorKind::data, "{}: such files are read by Apache Arrow, and this Hexad was built without it: no {}. {}",
         file.string(), library.string(), kInstall);
  try {
    installation::open_needed(library, installation::arrow(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  } catch (const Error& error) {
    fail(ErrorKind::data, "{}: such files are read by Apache Arrow, which cannot be loaded: {}", file.string(),
         error.what());
  }
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle)
    fail(ErrorKind::data, "{}: such files are read by Apache Arrow, which cannot be loaded: {}. {}", file.string(),
         ::dlerror(), kInstall);
  const void* const found = ::dlsym(handle, HEXAD_ARROW_INTERFACE);
  if (!found)
    fail(ErrorKind::data, "{}: {} has no {}: it is not of this build", file.string(), library.string(),
         HEXAD_ARROW_INTERFACE);
  return *static_cast<const hexad_arrow_interface*>(found);
}

const hexad_arrow_interface& arrow_for(const fs::path& file) {
  static const hexad_arrow_interface* loaded = nullptr;
  if (!loaded) {
    loaded = &load_arrow(installation::home() / "lib/libhexad_arrow.so", file);
  }
  return *loaded;
}

}  // namespace hexad::table
