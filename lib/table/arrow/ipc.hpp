// Files of Arrow's IPC formats, mapped.
#pragma once
#include <memory>
#include <string>

#include "lib/table/arrow/table.hpp"

namespace hexad::table::arrow_files {

// Rows of a file that is not compressed, as we keep them.
std::unique_ptr<Table> mapped_table(const std::string& file);

}  // namespace hexad::table::arrow_files
