// A packed file of text, unpacked.
#pragma once
#include <filesystem>
#include <memory>

#include "lib/table/budget.hpp"
#include "lib/table/container.hpp"
#include "lib/table/text_bytes.hpp"

namespace hexad::table {

// In memory as far as the budget goes, else in a file of the cache. Throws Error(data).
std::unique_ptr<TextBytes> unpacked_bytes(const std::filesystem::path& file, Packing packing, Budget& budget);

}  // namespace hexad::table
