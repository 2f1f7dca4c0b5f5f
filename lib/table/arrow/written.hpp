// What the cells of a text format are: numbers and truth values where all of a column are, else texts.
#pragma once
#include <memory>
#include <string_view>

#include <arrow/array/array_binary.h>
#include <arrow/result.h>

namespace hexad::table::arrow_files {

// Whether it is a number of JSON: 007, +1, .5 and nan are none.
bool is_json_number(std::string_view text);

class Written {
 public:
  void add(const arrow::StringArray& cells);
  bool is_boolean() const { return any_ && booleans_; }  // True, TRUE and true; the same of false
  bool is_json() const { return any_ && (numbers_ || booleans_); }

 private:
  bool any_ = false, numbers_ = true, booleans_ = true;
};

// The cells of a column of truth values, as JSON writes them.
arrow::Result<std::shared_ptr<arrow::Array>> lower_case(const arrow::Array& cells);

}  // namespace hexad::table::arrow_files
