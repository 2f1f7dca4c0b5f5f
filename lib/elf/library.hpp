// Opens a shared object whose file has been looked at.
#pragma once
#include <string>

#include "lib/base/file/resolved_file.hpp"

namespace hexad::elf {

// dlopen with `mode` (RTLD_NOW ...) by the file's real path, so that $ORIGIN and debuggers find what lies beside it.
// Null where the loader refuses, and `why` is its reason, without the path. Throws Error(plugin) if what it has mapped
// is another file than the open one: somebody has exchanged it meanwhile, or an older one of that name is in this
// process. The library's initialisers have run by then: that nobody can exchange it is for insecure() to say, before.
void* open_library(const ResolvedFile& file, int mode, std::string& why);

}  // namespace hexad::elf
