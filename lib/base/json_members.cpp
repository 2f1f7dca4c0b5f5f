#include "lib/base/json_members.hpp"

#include <algorithm>
#include <array>

namespace hexad {
namespace {

constexpr std::string_view kSpace = " \t\n\r";

// What means something inside of a value. (find_first_of searches its set for every character.)
constexpr std::array<bool, 256> table_of(std::string_view characters) {
  std::array<bool, 256> table{};
  for (const char c : characters) table[static_cast<unsigned char>(c)] = true;
  return table;
}
constexpr std::array<bool, 256> kInValue = table_of("\"{}[],");

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::optional<JsonMembers> object() {
    JsonMembers members;
    if (!accept('{')) return std::nullopt;
    if (accept('}')) return at_end() ? std::optional(members) : std::nullopt;
    do {
      const std::optional<std::string_view> name = this->name();
      if (!name || !accept(':')) return std::nullopt;
      const std::optional<std::string_view> value = this->value();
      if (!value) return std::nullopt;
      members.emplace_back(*name, *value);
    } while (accept(','));
    if (!accept('}') || !at_end()) return std::nullopt;
    return members;
  }

 private:
  void skip_space() { at_ = std::min(text_.find_first_not_of(kSpace, at_), text_.size()); }
  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }
  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool skip_in_value() {
    while (at_ < text_.size() && !kInValue[static_cast<unsigned char>(text_[at_])]) ++at_;
    return at_ < text_.size();
  }

  // Behind the quote that ends the text whose first character is at at_: one with an even number of backslashes before
  // it.
  bool skip_text() {
    for (const size_t begin = at_; (at_ = text_.find('"', at_)) != text_.npos; ++at_) {
      size_t backslashes = 0;
      while (at_ - backslashes > begin && text_[at_ - backslashes - 1] == '\\') ++backslashes;
      if (backslashes % 2 == 0) return ++at_, true;
    }
    return false;
  }

  std::optional<std::string_view> name() {
    if (!accept('"')) return std::nullopt;
    const size_t begin = at_;
    if (!skip_text()) return std::nullopt;
    const std::string_view found = text_.substr(begin, at_ - 1 - begin);
    return found.find('\\') == found.npos ? std::optional(found) : std::nullopt;
  }

  // Up to the comma or bracket behind it.
  std::optional<std::string_view> value() {
    skip_space();
    const size_t begin = at_;
    size_t depth = 0;
    while (skip_in_value()) {
      const char c = text_[at_];
      if (depth == 0 && (c == ',' || c == '}' || c == ']')) return text_.substr(begin, at_ - begin);
      ++at_;
      if (c == '"') {
        if (!skip_text()) return std::nullopt;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c != ',') {
        --depth;
      }
    }
    return std::nullopt;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::optional<JsonMembers> json_members(std::string_view object) { return Scanner(object).object(); }

}  // namespace hexad
