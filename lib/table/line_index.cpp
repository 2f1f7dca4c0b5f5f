#include "lib/table/line_index.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "lib/base/text.hpp"

namespace hexad::table {

LineIndex::LineIndex(const TextBytes& bytes, int64_t begin) : end_(bytes.size()) {
  constexpr int64_t kPart = 1 << 20;
  std::string part;
  int64_t line_begin = begin, blank = 0;
  bool is_blank = true;  // what was seen of the line
  const auto end_line = [&](int64_t next) {
    if (is_blank) {
      ++blank;
    } else {
      if (blank > (gaps_.empty() ? 0 : gaps_.back().second)) gaps_.emplace_back(size(), blank);
      begins_.push_back(line_begin);
    }
    line_begin = next;
    is_blank = true;
  };
  for (int64_t offset = begin; offset < end_; offset += static_cast<int64_t>(part.size())) {
    part.resize(static_cast<size_t>(std::min(kPart, end_ - offset)));
    bytes.read(offset, part);
    const std::string_view text = part;
    for (size_t at = 0; at < text.size();) {
      const size_t line_break = std::min(text.find('\n', at), text.size());
      is_blank = is_blank && trimmed(text.substr(at, line_break - at)).empty();
      at = line_break + 1;
      if (line_break < text.size()) end_line(offset + static_cast<int64_t>(at));
    }
  }
  if (!is_blank) end_line(end_);
}

Line LineIndex::at(int64_t index) const {
  const auto after = std::ranges::upper_bound(gaps_, index, {}, &std::pair<int64_t, int64_t>::first);
  const int64_t blank = after == gaps_.begin() ? 0 : std::prev(after)->second;
  const auto at = static_cast<size_t>(index);
  return {begins_[at], at + 1 < begins_.size() ? begins_[at + 1] : end_, index + 1 + blank};
}

}  // namespace hexad::table
