// Rows that Apache Arrow reads.
#pragma once
#include <filesystem>
#include <memory>

#include "lib/table/budget.hpp"
#include "lib/table/container.hpp"
#include "lib/table/rows.hpp"

namespace hexad::table {

// A .parquet, .arrow, .csv or .tsv.
std::unique_ptr<Rows> arrow_rows(const std::filesystem::path& file, const Container& container, Budget& budget);

}  // namespace hexad::table
