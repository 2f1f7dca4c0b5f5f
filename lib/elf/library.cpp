#include "lib/elf/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include "lib/base/error.hpp"

namespace hexad::elf {

void* open_library(const ResolvedFile& file, int mode, std::string& why) {
  const std::string path = file.path().string();
  void* const library = ::dlopen(path.c_str(), mode);
  if (!library) {
    const char* const said = ::dlerror();
    why = said ? said : "the loader does not say why";
    if (why.starts_with(path + ": ")) why.erase(0, path.size() + 2);
    return nullptr;
  }
  link_map* map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0 || !file.is_mapped_at(map->l_ld))
    fail(ErrorKind::plugin,
         "{}: the loader has opened another file of this name than the one that was checked: it was exchanged "
         "meanwhile, or this process holds an older one. Start again, and leave the file as it is",
         path);
  return library;
}

}  // namespace hexad::elf
