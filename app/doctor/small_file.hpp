// Files of a few lines by which a system describes itself: /proc, /sys, headers of libraries.
#pragma once
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"

namespace hexad::doctor {

// Its text; nothing where it is not there or cannot be read.
inline std::optional<std::string> small_file(const std::filesystem::path& file) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(file, unknown)) return std::nullopt;
  try {
    return read_file(file);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// The number that a text begins with, behind blanks; nothing where there is none ("max").
inline std::optional<uint64_t> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end != text.data() ? std::optional(number) : std::nullopt;
}

// What follows `name` on the first line that begins with it, without the blanks, tabs and colons between; empty where
// there is no such line.
inline std::string_view line_behind(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    const size_t value = line.find_first_not_of(" \t:");
    if (value != 0 && value != line.npos) return line.substr(value);
  }
  return {};
}

}  // namespace hexad::doctor
