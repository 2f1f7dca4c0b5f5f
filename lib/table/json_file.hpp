// Rows of JSON texts.
#pragma once
#include <filesystem>
#include <memory>

#include "lib/table/rows.hpp"
#include "lib/table/text_bytes.hpp"

namespace hexad::table {

// One object a line, but for blank lines; or an array of objects, which is held in memory. UTF-8, with a byte order
// mark or without. A row that is malformed is an Error(data) that names file:line when it is read. One object over
// several lines is refused with the command that makes rows of it.
std::unique_ptr<Rows> json_rows(std::unique_ptr<TextBytes> bytes, const std::filesystem::path& file);

}  // namespace hexad::table
