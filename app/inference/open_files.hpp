// Whether a process of a run may have as many files open as it wants.
#pragma once

namespace hexad::inference {

// Throws Error(config) with got and wanted where the limit of open files, raised as far as it goes, is too low for a
// run of so many ranks.
void require_open_files(int ranks);

}  // namespace hexad::inference
