// The reference page of all keys, docs/config.md.
#pragma once
#include <string>

namespace hexad::config {

// Markdown with a table for each block, from the schema alone: the same on every machine.
std::string reference_markdown();

}  // namespace hexad::config
