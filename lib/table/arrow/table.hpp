// A table whose rows are handed out as JSON. What cannot be done throws Refused: the reason, without the file's name.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include <arrow/result.h>
#include <arrow/status.h>

#include "lib/table/arrow/interface.h"
#include "lib/table/arrow/stamp.hpp"

namespace hexad::table::arrow_files {

class Table {
 public:
  virtual ~Table() = default;
  virtual int64_t size() const = 0;
  virtual int64_t memory() const { return 0; }
  // Appends the row as a JSON object; 0 <= index < size().
  virtual void append_row(int64_t index, std::string& out) = 0;
};

// Arrow's reason on one line, without the kind of status in front of it and without the line of its source.
std::string reason_of(const arrow::Status& status);

inline void check(const arrow::Status& status) {
  if (!status.ok()) throw Refused(reason_of(status));
}
template <typename T>
T take(arrow::Result<T> result) {
  check(result.status());
  return std::move(result).ValueUnsafe();
}

// `to`: for source.prepare. `stamp`: of the file, before anything of it was read.
struct Source : hexad_arrow_source {
  void* to;
  Stamp stamp;
};
std::unique_ptr<Table> open_parquet(const Source& source);
// The stream or the file format of IPC.
std::unique_ptr<Table> open_ipc(const Source& source);
std::unique_ptr<Table> open_csv(const Source& source);

}  // namespace hexad::table::arrow_files
