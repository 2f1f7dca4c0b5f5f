// Files that are believed: by them processes of one user find each other. Nobody else may have written one.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace hexad {

// A folder that is this user's alone (0700). Throws Error(data) if it cannot be made, or if there is a link, or what
// belongs to somebody else or is open to others.
void make_private_folder(const std::filesystem::path& folder);

// The text of folder/name; nothing while one of them is not there. Throws Error(data), which says what is wrong and
// what was wanted: neither may be a link, both must belong to this user and give nobody else a right. What is read is
// what was looked at.
std::optional<std::string> read_private_file(const std::filesystem::path& folder, const std::string& name);

}  // namespace hexad
