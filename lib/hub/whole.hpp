// Whether a snapshot of the Hub's cache has all that its reader needs: a download may have broken off, or have been of
// some files alone.
#pragma once
#include <filesystem>

#include "lib/hub/hub.hpp"
#include "lib/hub/repository.hpp"

namespace hexad::hub {

// Throws Error(data) that names the first file that is missing, with the line that fetches the rest, or a link that
// leads out of the repository's folder. What is no sign of a broken download (a model of another format, a data set
// without rows) is left to the reader. `snapshot`: without links.
void require_whole(Use use, const Repository& repository, const std::filesystem::path& snapshot);

}  // namespace hexad::hub
