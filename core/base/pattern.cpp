#include "core/base/pattern.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/base/error.hpp"

namespace hexad {

Pattern::Pattern(const char* expression) {
  int error = 0;
  size_t at = 0;
  code_ = {pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression), PCRE2_ZERO_TERMINATED,
                         PCRE2_ANCHORED | PCRE2_ENDANCHORED, &error, &at, nullptr),
           [](void* code) { pcre2_code_free(static_cast<pcre2_code*>(code)); }};
  if (!code_) fail(ErrorKind::internal, "pattern {}: PCRE2 error {} at offset {}", expression, error, at);
}

bool Pattern::matches(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> found(pcre2_match_data_create(1, nullptr),
                                                                                  pcre2_match_data_free);
  return pcre2_match(static_cast<const pcre2_code*>(code_.get()), reinterpret_cast<PCRE2_SPTR>(text.data()),
                     text.size(), 0, 0, found.get(), nullptr) >= 0;
}

}  // namespace hexad
