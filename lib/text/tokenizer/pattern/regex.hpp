// A regular expression in the syntax of tokenizer.json (Oniguruma's Ruby syntax), run by PCRE2.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hexad::text {

class Regex {
 public:
  struct Match {
    size_t begin, end;  // bytes
  };

  // Throws Error(data), "<where>: ...", for a pattern that is wrong or uses what is not supported.
  Regex(std::string_view pattern, const std::string& where);
  ~Regex();
  Regex(Regex&& other) noexcept;
  Regex(const Regex&) = delete;

  // All matches in valid UTF-8, from left to right; an empty match right behind another match does not count. Any
  // thread. Throws Error(data) when matching takes more than PCRE2's limits.
  void find_all(std::string_view text, std::vector<Match>& matches) const;

 private:
  void* code_ = nullptr;  // pcre2_code
  std::string where_;
};

// The pattern in PCRE2's syntax, with \s, \w, \h and \p{..} spelled out to mean what they mean in Oniguruma, and with
// classes in classes and && (class_pattern.hpp). Throws Error(data) for possessive-looking flags and other things that
// PCRE2 would read differently.
std::string pcre2_pattern(std::string_view oniguruma, const std::string& where);

// The pattern that matches `text` itself.
std::string escape_regex(std::string_view text);

}  // namespace hexad::text
