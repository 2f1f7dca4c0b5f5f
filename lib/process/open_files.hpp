// How many files, sockets and pipes this process may have open at once.
#pragma once
#include <sys/resource.h>

namespace hexad::process {

// Raises the soft limit to the hard one, which children inherit, and returns the limit that holds from then on.
rlim_t raise_open_files();

}  // namespace hexad::process
