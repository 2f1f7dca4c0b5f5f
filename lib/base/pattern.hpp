// A regular expression that a whole text has to match (PCRE2, bytes).
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hexad {

class Pattern {
 public:
  // `expression` is the program's own; one that does not compile is a defect of the program: Error(internal).
  explicit Pattern(const char* expression);
  // An expression of a user's; `.` stands for line ends too. One that does not compile: Error(config) that begins with
  // `where`.
  static Pattern of_user(const std::string& where, const std::string& expression);

  // Any thread. A text that needs more than PCRE2's limit of steps does not match.
  bool matches(std::string_view text) const { return decide(text).value_or(false); }
  // The same; nothing where the limit was reached.
  std::optional<bool> decide(std::string_view text) const;

 private:
  Pattern() = default;
  std::shared_ptr<void> code_;  // pcre2_code
};

}  // namespace hexad
