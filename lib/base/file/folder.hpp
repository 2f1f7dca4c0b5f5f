// What a folder holds. A listing that fails, at its beginning or in the middle of it, is no shorter folder: it throws.
#pragma once
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace hexad {

// Its entries in order of name. Throws Error(data) naming the folder and the reason.
std::vector<std::filesystem::directory_entry> entries_of(const std::filesystem::path& folder);

// The names in it for a message, folders with a slash: "README.md, data/ and 12 more"; "nothing". Throws as above.
std::string listing_of(const std::filesystem::path& folder);

// All below it too, each folder before what it holds; where links to folders lead is not looked at. Throws as above.
std::vector<std::filesystem::directory_entry> entries_below(const std::filesystem::path& folder);

// Whether an entry has to be read as a file: also a link that leads to nothing or in circles, and what nobody may look
// at, so that whoever reads it says so; no folder, pipe, socket or device.
bool is_to_be_read(const std::filesystem::directory_entry& entry);

// Moves what a folder holds to beside it, and removes it. What cannot be moved stays, and so does the folder then.
void dissolve_folder(const std::filesystem::path& folder);

// Why a folder cannot be made, with those above it that are not there: what create_directories would say, as far as
// that can be asked without making anything (names in the way, permissions, a read-only file system). None where the
// folder is there, and where nothing is known against it.
std::error_code why_not_made(const std::filesystem::path& folder);
// Why nothing can be made in a folder that is there.
std::error_code why_nothing_added(const std::filesystem::path& folder);

}  // namespace hexad
