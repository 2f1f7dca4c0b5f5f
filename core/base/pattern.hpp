// A regular expression that a whole text has to match (PCRE2, bytes).
#pragma once
#include <memory>
#include <string_view>

namespace hexad {

class Pattern {
 public:
  // `expression` is the program's own; one that does not compile is a defect of the program: Error(internal).
  explicit Pattern(const char* expression);
  // Any thread. A text that needs more than PCRE2's limit of steps does not match.
  bool matches(std::string_view text) const;

 private:
  std::shared_ptr<void> code_;  // pcre2_code
};

}  // namespace hexad
