#include "core/environment/answer.hpp"

#include <algorithm>
#include <cctype>

#include "lib/text/comparable.hpp"

namespace hexad::environment {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }

// Length of the number (digits with separators of thousands, decimals) that starts at `begin`.
size_t number_length(std::string_view text, size_t begin) {
  size_t end = begin;
  while (end < text.size() && digit(text[end])) ++end;
  const auto group = [&](size_t at) {
    return at + 3 < text.size() && text[at] == ',' && digit(text[at + 1]) && digit(text[at + 2]) &&
           digit(text[at + 3]) && (at + 4 >= text.size() || !digit(text[at + 4]));
  };
  while (end - begin > 0 && group(end)) end += 4;
  if (end + 1 < text.size() && text[end] == '.' && digit(text[end + 1])) {
    ++end;
    while (end < text.size() && digit(text[end])) ++end;
  }
  return end - begin;
}

}  // namespace

std::string normalized(std::string_view text, bool ignore_case) {
  std::string result = text::comparable(text, ignore_case);
  if (result.size() > 1 && result.back() == '.') result.pop_back();
  return result;
}

std::optional<std::string> canonical_number(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  std::string digits(text);
  if (digits.starts_with('.')) digits.insert(0, "0");
  if (digits.ends_with('.')) digits.pop_back();
  if (digits.empty() || !digit(digits[0]) || number_length(digits, 0) != digits.size()) return std::nullopt;
  digits.erase(std::remove(digits.begin(), digits.end(), ','), digits.end());
  if (digits.find('.') != std::string::npos) {
    while (digits.back() == '0') digits.pop_back();
    if (digits.back() == '.') digits.pop_back();
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  if (digits.starts_with('.')) digits.insert(0, "0");
  return negative && digits != "0" ? "-" + digits : digits;
}

std::optional<std::string> last_number(std::string_view text) {
  std::optional<std::string> result;
  for (size_t i = 0; i < text.size();) {
    if (!digit(text[i])) {
      ++i;
      continue;
    }
    size_t begin = i;
    if (begin > 0 && text[begin - 1] == '.') --begin;  // .5
    const size_t length = begin < i ? 1 + number_length(text, i) : number_length(text, i);
    const bool minus = begin > 0 && text[begin - 1] == '-' &&
                       (begin < 2 || !std::isalnum(static_cast<unsigned char>(text[begin - 2])));
    const size_t first = minus ? begin - 1 : begin;
    result = canonical_number(text.substr(first, begin + length - first));
    i = begin + length;
  }
  return result;
}

}  // namespace hexad::environment
