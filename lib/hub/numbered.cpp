#include "lib/hub/numbered.hpp"

#include <algorithm>
#include <optional>
#include <tuple>

#include <fmt/format.h>

namespace hexad::hub {
namespace {

constexpr size_t kMostDigits = 6;  // a name could ask for a loop over any number

struct NumberedFile {
  std::string before, after;  // "data/train-", "-of-00004.jsonl"
  size_t digits = 0;          // of a number
  long parts = 0;

  auto key() const { return std::tie(before, after); }
  bool operator<(const NumberedFile& other) const { return key() < other.key(); }
  std::string part(long number) const { return fmt::format("{}{:0{}}{}", before, number, digits, after); }
};

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= kMostDigits &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::optional<NumberedFile> numbered_file(const std::string& name) {
  const size_t of = name.rfind("-of-");
  if (of == name.npos || of == 0) return std::nullopt;
  const size_t dash = name.rfind('-', of - 1), end = std::min(name.find('.', of), name.size());
  if (dash == name.npos) return std::nullopt;
  const std::string number = name.substr(dash + 1, of - dash - 1), parts = name.substr(of + 4, end - of - 4);
  if (!is_number(number) || !is_number(parts)) return std::nullopt;
  return NumberedFile{name.substr(0, dash + 1), name.substr(of), number.size(), std::stol(parts)};
}

}  // namespace

std::string missing_part(const std::set<std::string>& names) {
  std::set<NumberedFile> files;
  for (const std::string& name : names)
    if (const auto file = numbered_file(name)) files.insert(*file);
  for (const NumberedFile& file : files) {
    const long first = !names.contains(file.part(0)) && names.contains(file.part(file.parts)) ? 1 : 0;
    for (long number = first; number < first + file.parts; ++number)
      if (!names.contains(file.part(number))) return file.part(number);
  }
  return "";
}

}  // namespace hexad::hub
