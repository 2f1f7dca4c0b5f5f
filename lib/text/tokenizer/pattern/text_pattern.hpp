// The `pattern` of Replace and Split: {"String": literal text} or {"Regex": regular expression}.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/tokenizer/step/component.hpp"
#include "lib/text/tokenizer/pattern/regex.hpp"

namespace hexad::text {

class TextPattern {
 public:
  explicit TextPattern(const Component& owner);

  void find_all(std::string_view text, std::vector<Regex::Match>& matches) const;

  // The regular expression; empty for a literal.
  const std::string& regex_source() const { return regex_source_; }

 private:
  std::string literal_, regex_source_;
  std::optional<Regex> regex_;
};

}  // namespace hexad::text
