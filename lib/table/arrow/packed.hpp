// The bytes of a file, unpacked on the way.
#pragma once
#include <memory>
#include <string>

#include <arrow/io/interfaces.h>

#include "lib/table/arrow/table.hpp"

namespace hexad::table::arrow_files {

// `packing`: "" (as it is), "gz" or "zst", also of several parts in a row.
std::shared_ptr<arrow::io::InputStream> unpacked(const std::string& file, const std::string& packing);

// Hands all of them to `out`.
void unpack(const std::string& file, const std::string& packing, hexad_arrow_sink out, void* to);

}  // namespace hexad::table::arrow_files
