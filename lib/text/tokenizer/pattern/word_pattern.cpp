#include "lib/text/tokenizer/pattern/word_pattern.hpp"

#include <cstdint>

#include "lib/text/unicode.hpp"

namespace hexad::text {
namespace {

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kModernHead = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})";
constexpr std::string_view kModernTail = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// A word's end is found by trying the regex's alternatives in order at the start of the word.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : end_(text.data() + text.size()) {}

  const char* gpt2_word(const char* at) const {
    if (*at == '\'') {
      if (const char* end = contraction(at, false)) return end;
    }
    const char* body = at;
    if (*at == ' ' && at + 1 < end_) ++body;
    const uint8_t kind = class_at(body);
    if (kind & kSpace) return spaces(at);
    return run(body, kind & (kLetter | kNumber));
  }

  const char* modern_word(const char* at, size_t digits) const {
    if (*at == '\'') {
      if (const char* end = contraction(at, true)) return end;
    }
    const uint8_t kind = class_at(at);
    if (kind & kLetter) return run(at, kLetter);
    if (kind & kNumber) return few_digits(at, digits);
    const char* next = at + char_size(*at);
    if (!(kind & kLineEnd) && next < end_) {
      if (class_at(next) & kLetter) return run(next, kLetter);
      if (*at == ' ' && !(class_at(next) & (kSpace | kNumber))) return symbols(next);
    }
    if (kind & kSpace) return spaces_to_line_end(at);
    return symbols(at);
  }

 private:
  uint8_t class_at(const char* at) const {
    const auto byte = static_cast<uint8_t>(*at);
    return classes_[byte < 0x80 ? byte : next_char(at)];
  }

  // Past the characters from `at` on whose letter, number and space bits are `wanted` (0: symbols).
  const char* run(const char* at, uint8_t wanted) const {
    while (at < end_) {
      const char* next = at;
      const auto byte = static_cast<uint8_t>(*at);
      const uint8_t kind = byte < 0x80 ? (++next, classes_[byte]) : classes_[next_char(next)];
      if ((kind & (kLetter | kNumber | kSpace)) != wanted) break;
      at = next;
    }
    return at;
  }

  const char* few_digits(const char* at, size_t most) const {
    for (size_t count = 0; count < most && at < end_ && class_at(at) & kNumber; ++count) at += char_size(*at);
    return at;
  }

  // [^\s\p{L}\p{N}]+[\r\n]*
  const char* symbols(const char* at) const {
    at = run(at, 0);
    while (at < end_ && (*at == '\r' || *at == '\n')) ++at;
    return at;
  }

  // \s+(?!\S)|\s+: all of a run of spaces at the end of the text, all but the last one elsewhere.
  const char* spaces(const char* at) const {
    const char* last = at;
    const char* stop = at;
    while (stop < end_ && class_at(stop) & kSpace) last = stop, stop += char_size(*stop);
    return stop == end_ || last == at ? stop : last;
  }

  // \s*[\r\n]+|\s+(?!\S)|\s+
  const char* spaces_to_line_end(const char* at) const {
    const char* line = nullptr;
    const char* last = at;
    const char* stop = at;
    while (stop < end_) {
      const uint8_t kind = class_at(stop);
      if (!(kind & kSpace)) break;
      last = stop, stop += char_size(*stop);
      if (kind & kLineEnd) line = stop;
    }
    if (line) return line;
    return stop == end_ || last == at ? stop : last;
  }

  // End of 's 't 're 've 'm 'll 'd at `at`, or null. Any case: U+017F is a small s.
  const char* contraction(const char* at, bool any_case) const {
    const size_t rest = static_cast<size_t>(end_ - at);
    const auto letter = [&](size_t i) { return i < rest ? (any_case ? at[i] | 0x20 : at[i]) : 0; };
    const int first = letter(1), second = letter(2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l'))
      return at + 3;
    if (any_case && rest > 2 && at[1] == '\xC5' && at[2] == '\xBF') return at + 3;
    return nullptr;
  }

  const uint8_t* classes_ = char_classes();
  const char* end_;
};

}  // namespace

std::optional<WordPattern> WordPattern::recognize(std::string_view regex) {
  if (regex == kGpt2) return gpt2();
  if (!regex.starts_with(kModernHead) || !regex.ends_with(kModernTail)) return std::nullopt;
  if (regex.size() < kModernHead.size() + kModernTail.size()) return std::nullopt;
  const std::string_view digits =
      regex.substr(kModernHead.size(), regex.size() - kModernHead.size() - kModernTail.size());
  if (digits.empty()) return WordPattern(false, 1);
  if (digits == "{1,3}") return WordPattern(false, 3);
  return std::nullopt;
}

void WordPattern::split(std::string_view text, std::vector<size_t>& ends) const {
  const Scanner scanner(text);
  const char* begin = text.data();
  const char* at = begin;
  while (at < begin + text.size()) {
    at = gpt2_ ? scanner.gpt2_word(at) : scanner.modern_word(at, digits_);
    ends.push_back(static_cast<size_t>(at - begin));
  }
}

}  // namespace hexad::text
