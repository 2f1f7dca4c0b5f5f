#include "lib/table/arrow/written.hpp"

#include <array>

#include <arrow/builder.h>

namespace hexad::table::arrow_files {
namespace {

constexpr std::array<std::string_view, 3> kTrue = {"true", "True", "TRUE"}, kFalse = {"false", "False", "FALSE"};

bool is_one_of(const std::array<std::string_view, 3>& words, std::string_view text) {
  return text == words[0] || text == words[1] || text == words[2];
}

// Leaves `text` behind its digits; how many there are.
size_t skip_digits(std::string_view& text) {
  size_t count = 0;
  while (count < text.size() && text[count] >= '0' && text[count] <= '9') ++count;
  text.remove_prefix(count);
  return count;
}

}  // namespace

bool is_json_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const bool starts_with_zero = text.starts_with('0');
  const size_t whole = skip_digits(text);
  if (whole == 0 || (starts_with_zero && whole > 1)) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (skip_digits(text) == 0) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (skip_digits(text) == 0) return false;
  }
  return text.empty();
}

void Written::add(const arrow::StringArray& cells) {
  for (int64_t i = 0; i < cells.length() && (numbers_ || booleans_); ++i) {
    if (cells.IsNull(i)) continue;
    const std::string_view cell = cells.GetView(i);
    any_ = true;
    numbers_ = numbers_ && is_json_number(cell);
    booleans_ = booleans_ && (is_one_of(kTrue, cell) || is_one_of(kFalse, cell));
  }
}

arrow::Result<std::shared_ptr<arrow::Array>> lower_case(const arrow::Array& cells) {
  const auto& texts = static_cast<const arrow::StringArray&>(cells);
  arrow::StringBuilder builder(arrow::system_memory_pool());
  for (int64_t i = 0; i < texts.length(); ++i) {
    if (texts.IsNull(i)) {
      ARROW_RETURN_NOT_OK(builder.AppendNull());
    } else {
      ARROW_RETURN_NOT_OK(builder.Append(is_one_of(kTrue, texts.GetView(i)) ? kTrue[0] : kFalse[0]));
    }
  }
  return builder.Finish();
}

}  // namespace hexad::table::arrow_files
