// Tables in files, whatever contains them: rows as JSON objects, each with the place it came from.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "lib/table/row.hpp"

namespace hexad::table {

// Threads may share it. Rows are read when they are asked for, and their errors come then.
class Rows {
 public:
  Rows() = default;
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  virtual ~Rows() = default;
  virtual int64_t size() const = 0;  // at least 1
  // 0 <= index < size(). Throws Error(data) that names file and place.
  virtual Row row(int64_t index) const = 0;
};

// The rows of a file, in their order. What it is says its name (container.hpp). Throws Error(data) that names the file
// and the reason, also where it holds no rows.
std::unique_ptr<Rows> open_file(const std::filesystem::path& file);

// The rows of a local data set: a file, or the files of `split` in a folder (folder.hpp), one after the other; some of
// several may hold none.
std::unique_ptr<Rows> open(const std::filesystem::path& path, const std::string& split);

}  // namespace hexad::table
