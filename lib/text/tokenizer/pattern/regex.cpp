#include "lib/text/tokenizer/pattern/regex.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>
#include <utility>

#include "lib/base/error.hpp"
#include "lib/text/unicode.hpp"

namespace hexad::text {
namespace {

pcre2_match_data* thread_match_data() {
  thread_local const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
  return data.get();
}

std::string error_text(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

Regex::Regex(std::string_view pattern, const std::string& where) : where_(where) {
  const std::string translated = pcre2_pattern(pattern, where);
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  size_t offset = 0;
  // In Ruby's syntax ^ and $ match at every line.
  code_ =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &offset, context.get());
  if (code_ == nullptr) {
    fail(ErrorKind::data, "{}: regex {} does not compile: {} (near \"{}\")", where, pattern, error_text(error),
         translated.substr(std::min(offset, translated.size()), 20));
  }
  // Without a JIT on this platform matching is slower and equal.
  pcre2_jit_compile(static_cast<pcre2_code*>(code_), PCRE2_JIT_COMPLETE);
}

Regex::~Regex() { pcre2_code_free(static_cast<pcre2_code*>(code_)); }

Regex::Regex(Regex&& other) noexcept : code_(std::exchange(other.code_, nullptr)), where_(std::move(other.where_)) {}

void Regex::find_all(std::string_view text, std::vector<Match>& matches) const {
  matches.clear();
  const auto* code = static_cast<const pcre2_code*>(code_);
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  pcre2_match_data* data = thread_match_data();
  const size_t* ends = pcre2_get_ovector_pointer(data);
  size_t from = 0, last_end = std::string_view::npos;
  while (from <= text.size()) {
    int rc = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, data, nullptr);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
      rc = pcre2_match(code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, nullptr);
    }
    if (rc == PCRE2_ERROR_NOMATCH) return;
    if (rc < 0)
      fail(ErrorKind::data, "{}: the regex gave up on a text of {} bytes: {}", where_, text.size(), error_text(rc));
    const Match match{ends[0], ends[1]};
    if (match.begin == match.end && match.end == last_end) {
      from += from < text.size() ? char_size(text[from]) : 1;
      continue;
    }
    from = last_end = match.end;
    matches.push_back(match);
  }
}

std::string escape_regex(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (std::string_view("\\.+*?()|[]{}^$#&-~ ").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

}  // namespace hexad::text
