// The half of lib/table that sees Apache Arrow (arrow/), opened with the first file that needs it: its libraries are
// none of the program's start.
#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "lib/table/arrow/interface.h"
#include "lib/table/container.hpp"
#include "lib/table/rows.hpp"

namespace hexad::table {

// libhexad_arrow.so at that place, which stays loaded. Throws Error(data) that says what to install; `file`: whose rows
// are wanted, for the message.
const hexad_arrow_interface& load_arrow(const std::filesystem::path& library, const std::filesystem::path& file);
// The same of the one that lies in lib/ beside the program's folder.
const hexad_arrow_interface& arrow_for(const std::filesystem::path& file);

}  // namespace hexad::table
