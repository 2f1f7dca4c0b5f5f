// Files of rows that pyarrow has written (data/make.py), and what of them is wanted.
#pragma once
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/table/rows.hpp"
#include "tests/support/hub_cache.hpp"
#include "tests/support/report.hpp"
#include "tests/support/said.hpp"

namespace table_test {

namespace fs = std::filesystem;
using test_support::Variable;

inline fs::path data_file(const fs::path& name) {
  const char* const source = std::getenv("HEXAD_SOURCE_DIR");
  return fs::path(source ? source : ".") / "tests/lib/table/data" / name;
}

// Each row as JSON text.
inline std::vector<std::string> texts(const hexad::table::Rows& rows) {
  std::vector<std::string> result;
  for (int64_t i = 0; i < rows.size(); ++i) result.push_back(hexad::data_text(rows.row(i).value));
  return result;
}

// What is thrown, "" if nothing is.
template <typename Work>
std::string refusal(const Work& work) {
  try {
    work();
    return "";
  } catch (const hexad::Error& error) {
    CHECK(error.kind() == hexad::ErrorKind::data);
    return error.what();
  }
}
inline std::string refusal_of(const fs::path& file) {
  return refusal([&] { texts(*hexad::table::open_file(file)); });
}

// Whether this build reads files by Arrow; notes the case as skipped where it does not.
inline bool has_arrow() {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  if (fs::exists(program.parent_path().parent_path() / "lib/libhexad_arrow.so")) return true;
  test_report::skipped("built without Apache Arrow (tools/setup.sh)");
  return false;
}

}  // namespace table_test
