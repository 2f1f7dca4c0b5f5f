// Whether a process of a run may have as many files open as it wants.
#pragma once
#include <sys/resource.h>

namespace hexad::inference {

// How many each process of a run of so many ranks wants.
rlim_t open_files_of_run(int ranks);

// Throws Error(config) with got and wanted where the limit of open files, raised as far as it goes, is too low for a
// run of so many ranks.
void require_open_files(int ranks);

}  // namespace hexad::inference
