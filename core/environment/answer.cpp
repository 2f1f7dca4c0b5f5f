#include "core/environment/answer.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <vector>

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

void erase_all(std::string& text, std::string_view part) {
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) text.erase(at, part.size());
}

// Without what only affects how mathematics looks.
std::string bare(std::string_view text) {
  std::string result(text);
  for (std::string_view part :
       {"\\left", "\\right", "\\!", "\\,", "\\;", "\\ ", "\\$", "$", "\\%", "%", "^\\circ", "\\displaystyle"}) {
    erase_all(result, part);
  }
  for (std::string_view name : {"\\dfrac", "\\tfrac"}) {
    for (size_t at = result.find(name); at != std::string::npos; at = result.find(name))
      result.replace(at, name.size(), "\\frac");
  }
  result.erase(std::remove_if(result.begin(), result.end(), [](unsigned char c) { return std::isspace(c); }),
               result.end());
  while (!result.empty() && result.back() == '.') result.pop_back();
  return result;
}

// The value of a/b, \frac{a}{b} or a plain number.
std::optional<double> value_of(std::string text) {
  double sign = 1;
  if (text.starts_with("-\\frac")) {
    sign = -1;
    text.erase(0, 1);
  }
  std::string above, below;
  if (text.starts_with("\\frac{") && text.ends_with("}")) {
    const size_t middle = text.find("}{");
    if (middle == std::string::npos) return std::nullopt;
    above = text.substr(6, middle - 6);
    below = text.substr(middle + 2, text.size() - middle - 3);
  } else if (const size_t slash = text.find('/'); slash != std::string::npos) {
    above = text.substr(0, slash);
    below = text.substr(slash + 1);
  } else {
    above = text;
    below = "1";
  }
  const auto top = canonical_number(above), bottom = canonical_number(below);
  if (!top || !bottom) return std::nullopt;
  const double divisor = std::strtod(bottom->c_str(), nullptr);
  if (divisor == 0) return std::nullopt;
  return sign * std::strtod(top->c_str(), nullptr) / divisor;
}

}  // namespace

std::string normalized(std::string_view text, bool ignore_case) {
  std::string result;
  for (unsigned char c : text) {
    if (std::isspace(c)) {
      if (!result.empty() && result.back() != ' ') result += ' ';
    } else {
      result += static_cast<char>(ignore_case ? std::tolower(c) : c);
    }
  }
  if (!result.empty() && result.back() == ' ') result.pop_back();
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

std::optional<std::string> last_boxed(std::string_view text) {
  std::optional<std::string> result;
  for (size_t at = 0; at < text.size(); ++at) {
    const bool boxed = text.substr(at).starts_with("\\boxed{"), fbox = text.substr(at).starts_with("\\fbox{");
    if (!boxed && !fbox) continue;
    const size_t begin = at + (boxed ? 7 : 6);
    int depth = 1;
    for (size_t i = begin; i < text.size(); ++i) {
      if (text[i] == '{') ++depth;
      if (text[i] == '}' && --depth == 0) {
        result = std::string(text.substr(begin, i - begin));
        break;
      }
    }
  }
  return result;
}

bool same_answer(std::string_view a, std::string_view b) {
  const std::string left = bare(a), right = bare(b);
  if (left == right) return !left.empty();
  const auto left_number = canonical_number(left), right_number = canonical_number(right);
  if (left_number && right_number) return *left_number == *right_number;
  const std::optional<double> x = value_of(left), y = value_of(right);
  return x && y && std::abs(*x - *y) <= 1e-9 * std::max(std::abs(*x), std::abs(*y));
}

}  // namespace hexad::environment
