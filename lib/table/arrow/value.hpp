// Values of Arrow as JSON text.
#pragma once
#include <cstdint>
#include <string>

#include <arrow/type_fwd.h>

namespace hexad::table::arrow_files {

// Throws Refused for a column of a type that has no JSON (durations, times of day, unions ...), or whose name stands
// twice, naming it.
void check_schema(const arrow::Schema& schema);

// Key of a field's metadata: its texts are JSON already (numbers, true), as they stand in a text format.
inline constexpr const char* kAsWritten = "hexad.as_written";

// Appends row `index` of the batch, an object with all columns of the schema, which check_schema has passed. As
// json.dumps of Python's writes what to_pylist makes of it, but: null for NaN and infinities; dates and timestamps are
// milliseconds since 1970 and decimals are texts, as the library `datasets` writes them. Bytes are text where they are
// UTF-8, else null. Throws Refused that names the column of a text that is not.
void append_row(const arrow::RecordBatch& batch, int64_t index, std::string& out);

}  // namespace hexad::table::arrow_files
