// Substitution by regular expressions (PCRE2, UTF-8) as Python's re.sub does it.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hexad::math {

// Thrown where a text asks for more steps than a verdict may take.
struct TooMuch {};

class Rewrite {
 public:
  struct Rule {
    std::string_view pattern;      // with groups only if it is the single rule
    std::string_view replacement;  // $1: the first group; $ before anything else is itself
  };
  // At each place the first rule that matches there replaces. A pattern that does not compile is std::logic_error.
  explicit Rewrite(const std::vector<Rule>& rules);
  Rewrite(std::string_view pattern, std::string_view replacement)
      : Rewrite(std::vector<Rule>{{pattern, replacement}}) {}

  // `text` is valid UTF-8. Throws TooMuch.
  std::string operator()(const std::string& text) const;
  bool found_in(std::string_view text) const;
  // The first group of every match, from left to right.
  std::vector<std::string> first_groups(std::string_view text) const;

 private:
  std::string expand(const std::string& replacement, std::string_view text, const size_t* places, int groups) const;

  std::shared_ptr<void> code_;  // pcre2_code
  std::vector<std::string> replacements_;
};

}  // namespace hexad::math
