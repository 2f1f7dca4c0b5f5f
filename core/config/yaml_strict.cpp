#include "core/config/yaml_strict.hpp"

#include <cstdint>
#include <string_view>

#include "core/base/error.hpp"

namespace hexad::config {

void check_strict_yaml(const std::string& text, const std::string& name) {
  int line = 1, column = 1;
  bool only_blanks = true;  // so far in this line
  for (const char c : text) {
    if (c == '\n') {
      ++line;
      column = 1;
      only_blanks = true;
      continue;
    }
    if (c == '\t' && only_blanks) {
      fail(ErrorKind::config, "{}:{}:{}: a tab cannot indent YAML; use spaces", name, line, column);
    }
    const auto byte = static_cast<uint8_t>(c);
    if ((byte < 0x20 && c != '\t' && c != '\r') || byte == 0x7f) {
      fail(ErrorKind::config, "{}:{}:{}: control character {:#04x} in a YAML file", name, line, column, byte);
    }
    only_blanks &= c == ' ';
    ++column;
  }
}

}  // namespace hexad::config
