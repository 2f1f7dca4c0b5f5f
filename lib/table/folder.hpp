// A local data set in a folder.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace hexad::table {

// The files of `split`, in order of name, in the first of these that has some: SPLIT.* and SPLIT-* in the folder, the
// same in data/, any name in SPLIT/; where nothing is named after a split, files of any name are "train", as Hugging
// Face reads such a folder. One that `datasets` has saved (save_to_disk) holds what its state.json names, or a folder a
// split. Throws Error(data): no such file, with the splits and subsets there are; files of several kinds, of which
// nobody says which are meant.
std::vector<std::filesystem::path> files_of_split(const std::filesystem::path& folder, const std::string& split);

}  // namespace hexad::table
