// The process in which a check library runs.
#pragma once
#include <filesystem>
#include <string>

namespace hexad::config {

// Opens the library if its digest is `sha256`, reads the input (hexad/check.h) from the socket `parent` until that side
// has ended, and writes one JSON object: {"findings": [[severity, key, message], ...], "names": {name: value, ...}}, or
// {"problem": text} and what else there is.
void serve_check(const std::filesystem::path& library, const std::string& sha256, int parent);

}  // namespace hexad::config
