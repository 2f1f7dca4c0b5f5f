// Folders of one kind beside each other: exp_001, exp_002 ...
#pragma once
#include <filesystem>
#include <string>

namespace hexad {

// Makes `parent`/`name`_NNN, the next that does not exist, and the parent; of several at a time each gets its own.
// Throws Error(data) that begins with `who`.
std::filesystem::path make_numbered_folder(const std::filesystem::path& parent, const std::string& name,
                                           const std::string& who);

// Throws what make_numbered_folder would throw, as far as that can be known without making anything.
void require_numbered_folder(const std::filesystem::path& parent, const std::string& name, const std::string& who);

}  // namespace hexad
