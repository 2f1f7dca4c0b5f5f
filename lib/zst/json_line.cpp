#include "lib/zst/json_line.hpp"

#include <charconv>
#include <cmath>

#include "lib/base/json.hpp"

namespace hexad::zst {
namespace {

void append(std::string& text, std::monostate) { text += "null"; }

template <typename T>
void append(std::string& text, std::span<const T> values) {
  char digits[32];
  text += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ',';
    if (std::isfinite(static_cast<double>(values[i])))
      text.append(digits, std::to_chars(digits, std::end(digits), values[i]).ptr);
    else
      text += "null";
  }
  text += ']';
}

}  // namespace

std::string json_line(const nlohmann::ordered_json& head, const std::vector<std::pair<const char*, Numbers>>& lists) {
  std::string text = json_text(head);
  text.pop_back();
  for (const auto& [name, numbers] : lists) {
    text.append(",\"").append(name).append("\":");
    std::visit([&](const auto& values) { append(text, values); }, numbers);
  }
  return text + "}";
}

}  // namespace hexad::zst
