#include "lib/base/pattern.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "lib/base/error.hpp"

namespace hexad {

namespace {

std::shared_ptr<void> compile(std::string_view expression, uint32_t options, int& error, size_t& at) {
  return {pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                        PCRE2_ANCHORED | PCRE2_ENDANCHORED | options, &error, &at, nullptr),
          [](void* code) { pcre2_code_free(static_cast<pcre2_code*>(code)); }};
}

}  // namespace

Pattern::Pattern(const char* expression) {
  int error = 0;
  size_t at = 0;
  code_ = compile(expression, 0, error, at);
  if (!code_) fail(ErrorKind::internal, "pattern {}: PCRE2 error {} at offset {}", expression, error, at);
}

Pattern Pattern::of_user(const std::string& where, const std::string& expression) {
  int error = 0;
  size_t at = 0;
  Pattern pattern;
  pattern.code_ = compile(expression, PCRE2_DOTALL, error, at);
  if (pattern.code_) return pattern;
  char why[256] = {};
  pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(why), sizeof why);
  fail(ErrorKind::config, "{}: '{}' is no regular expression (PCRE2): {} at offset {}", where, expression, why, at);
}

std::optional<bool> Pattern::decide(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> found(pcre2_match_data_create(1, nullptr),
                                                                                  pcre2_match_data_free);
  const int result = pcre2_match(static_cast<const pcre2_code*>(code_.get()), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                 text.size(), 0, 0, found.get(), nullptr);
  if (result >= 0) return true;
  return result == PCRE2_ERROR_NOMATCH ? std::optional(false) : std::nullopt;
}

}  // namespace hexad
