#include "plugins/environment/math/latex/rewrite.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>

#include "lib/base/utf8.hpp"

namespace hexad::math {
namespace {

constexpr uint32_t kMostMatchSteps = 400000;

// One for each thread: matching writes into it.
pcre2_match_data* scratch() {
  thread_local const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create(64, nullptr), pcre2_match_data_free);
  return data.get();
}

pcre2_match_context* limits() {
  thread_local const std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context(
      [] {
        pcre2_match_context* made = pcre2_match_context_create(nullptr);
        pcre2_set_match_limit(made, kMostMatchSteps);
        return made;
      }(),
      pcre2_match_context_free);
  return context.get();
}

int match(const void* code, std::string_view text, size_t from) {
  const auto run = [&](uint32_t options) {
    return pcre2_match(static_cast<const pcre2_code*>(code), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                       from, PCRE2_NO_UTF_CHECK | options, scratch(), limits());
  };
  int rc = run(0);
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT) rc = run(PCRE2_NO_JIT);
  if (rc < 0 && rc != PCRE2_ERROR_NOMATCH) throw TooMuch();
  return rc;
}

}  // namespace

Rewrite::Rewrite(const std::vector<Rule>& rules) {
  std::string pattern;
  for (const Rule& rule : rules) {
    // The empty group at the end tells which rule it was.
    if (!pattern.empty()) pattern += '|';
    pattern += rules.size() == 1 ? std::string(rule.pattern) : "(?:" + std::string(rule.pattern) + ")()";
    replacements_.emplace_back(rule.replacement);
  }
  int error = 0;
  size_t at = 0;
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  code_ = {pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | PCRE2_UCP, &error,
                         &at, context.get()),
           [](void* code) { pcre2_code_free(static_cast<pcre2_code*>(code)); }};
  if (!code_)
    throw std::logic_error("pattern " + pattern + ": PCRE2 error " + std::to_string(error) + " at offset " +
                           std::to_string(at));
  pcre2_jit_compile(static_cast<pcre2_code*>(code_.get()), PCRE2_JIT_COMPLETE);
}

std::string Rewrite::expand(const std::string& replacement, std::string_view text, const size_t* places,
                            int groups) const {
  std::string result;
  for (size_t i = 0; i < replacement.size(); ++i) {
    const bool group_sign =
        replacement[i] == '$' && i + 1 < replacement.size() && replacement[i + 1] >= '0' && replacement[i + 1] <= '9';
    if (!group_sign) {
      result += replacement[i];
      continue;
    }
    const int group = replacement[++i] - '0';
    if (group < groups && places[2 * group] != PCRE2_UNSET)
      result += text.substr(places[2 * group], places[2 * group + 1] - places[2 * group]);
  }
  return result;
}

std::string Rewrite::operator()(const std::string& text) const {
  std::string result;
  size_t from = 0;
  while (from <= text.size()) {
    const int rc = match(code_.get(), text, from);
    if (rc < 0) break;
    const size_t* places = pcre2_get_ovector_pointer(scratch());
    const size_t begin = places[0], end = places[1];
    result.append(text, from, begin - from);
    result += expand(replacements_[replacements_.size() == 1 ? 0 : static_cast<size_t>(rc) - 2], text, places, rc);
    from = end;
    if (begin == end) {  // an empty match: the character behind it stays
      if (begin >= text.size()) return result;
      result.append(text, end, char_size(text[end]));
      from = end + char_size(text[end]);
    }
  }
  if (from < text.size()) result.append(text, from);
  return result;
}

std::vector<std::string> Rewrite::first_groups(std::string_view text) const {
  std::vector<std::string> groups;
  for (size_t from = 0; from <= text.size() && match(code_.get(), text, from) >= 2;) {
    const size_t* places = pcre2_get_ovector_pointer(scratch());
    groups.emplace_back(text.substr(places[2], places[3] - places[2]));
    from = std::max(places[1], places[0] + 1);
  }
  return groups;
}

bool Rewrite::found_in(std::string_view text) const { return match(code_.get(), text, 0) >= 0; }

}  // namespace hexad::math
