// A whole text file.
#pragma once
#include <filesystem>
#include <string>

namespace hexad {

// The bytes of `file`; Error(data) names the file and the reason when it cannot be opened.
std::string read_file(const std::filesystem::path& file);

}  // namespace hexad
