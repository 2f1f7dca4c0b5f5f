// Rows that are made once, by decoding or parsing a whole file: kept in memory where they are few, else in a file.
#pragma once
#include <functional>
#include <memory>

#include <arrow/record_batch.h>

#include "lib/table/arrow/table.hpp"

namespace hexad::table::arrow_files {

using Reader = std::shared_ptr<arrow::RecordBatchReader>;

// The rows of `read()`. source.cache has them if they are above source.memory bytes: written beside it under a name of
// this process and renamed, so that it is whole or not there. `read` may be called twice and gives the same rows. Where
// there is no place to keep what does not fit, it is refused.
std::unique_ptr<Table> keep(const Source& source, const std::function<Reader()>& read);

// The table that is kept already, or null. One that is damaged is removed, to be made anew.
std::unique_ptr<Table> kept(const Source& source);

}  // namespace hexad::table::arrow_files
