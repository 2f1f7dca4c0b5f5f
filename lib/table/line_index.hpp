// Where the lines of a text are that are not blank.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "lib/table/text_bytes.hpp"

namespace hexad::table {

struct Line {
  int64_t begin = 0, end = 0;  // bytes, with the line break and the blank lines behind it
  int64_t number = 0;          // of all lines, from 1 on
};

// Eight bytes a line.
class LineIndex {
 public:
  LineIndex(const TextBytes& bytes, int64_t begin);
  int64_t size() const { return static_cast<int64_t>(begins_.size()); }
  Line at(int64_t index) const;

 private:
  std::vector<int64_t> begins_;
  std::vector<std::pair<int64_t, int64_t>> gaps_;  // from this line of the index on, how many blank ones came before
  int64_t end_ = 0;                                // of the last line and what is blank behind it
};

}  // namespace hexad::table
