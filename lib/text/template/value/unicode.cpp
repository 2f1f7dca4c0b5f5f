#include "lib/text/template/value/unicode.hpp"

#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

namespace hexad::text::jinja {
namespace {

template <typename Property>
bool all(std::string_view text, Property property) {
  for (size_t i = 0; i < text.size();) {
    if (!property(next_code_point(text, i))) return false;
  }
  return !text.empty();
}

int numeric_type(uint32_t code) { return u_getIntPropertyValue(static_cast<UChar32>(code), UCHAR_NUMERIC_TYPE); }

std::string utf8(const icu::UnicodeString& text) {
  std::string out;
  text.toUTF8String(out);
  return out;
}

icu::UnicodeString utf16(std::string_view text) {
  return icu::UnicodeString::fromUTF8({text.data(), static_cast<int32_t>(text.size())});
}

// Full title-case mapping of one character.
void append_title(icu::UnicodeString& out, uint32_t code) {
  icu::UnicodeString one(static_cast<UChar32>(code));
  out += one.toTitle(nullptr, icu::Locale::getRoot(), 0);
}

bool is_cased(uint32_t code) { return u_hasBinaryProperty(static_cast<UChar32>(code), UCHAR_CASED); }

}  // namespace

uint32_t next_code_point(std::string_view text, size_t& position) {
  const auto lead = static_cast<unsigned char>(text[position++]);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc2 ? 1 : 0;
  if (more == 0 || position + more > text.size()) return 0xfffd;
  uint32_t code = lead & (0x3fu >> more);
  for (int i = 0; i < more; ++i) {
    const auto next = static_cast<unsigned char>(text[position + i]);
    if ((next & 0xc0) != 0x80) return 0xfffd;
    code = code << 6 | (next & 0x3fu);
  }
  position += more;
  return code;
}

void append_code_point(std::string& text, uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint32_t lead[] = {0, 0xc0, 0xe0, 0xf0};
  text += static_cast<char>(lead[more] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) text += static_cast<char>(0x80u | (code >> (6 * i) & 0x3fu));
}

int64_t count_code_points(std::string_view text) {
  int64_t count = 0;
  for (size_t i = 0; i < text.size(); ++count) next_code_point(text, i);
  return count;
}

size_t byte_offset(std::string_view text, int64_t index) {
  size_t position = 0;
  while (index-- > 0 && position < text.size()) next_code_point(text, position);
  return position;
}

bool is_space(uint32_t code) {
  if (code < 0x80) return code == ' ' || (code >= 9 && code <= 13) || (code >= 0x1c && code <= 0x1f);
  const auto direction = u_charDirection(static_cast<UChar32>(code));
  return u_charType(static_cast<UChar32>(code)) == U_SPACE_SEPARATOR || direction == U_WHITE_SPACE_NEUTRAL ||
         direction == U_BLOCK_SEPARATOR || direction == U_SEGMENT_SEPARATOR;
}

bool is_printable(uint32_t code) {
  if (code < 0x80) return code >= 0x20 && code < 0x7f;
  switch (u_charType(static_cast<UChar32>(code))) {
    case U_UNASSIGNED:
    case U_CONTROL_CHAR:
    case U_FORMAT_CHAR:
    case U_SURROGATE:
    case U_PRIVATE_USE_CHAR:
    case U_LINE_SEPARATOR:
    case U_PARAGRAPH_SEPARATOR:
    case U_SPACE_SEPARATOR: return false;
    default: return true;
  }
}

size_t leading_space(std::string_view text) {
  size_t end = 0;
  for (size_t i = 0; i < text.size(); end = i) {
    if (!is_space(next_code_point(text, i))) break;
  }
  return end;
}

size_t trailing_space(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    size_t begin = end - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) --begin;
    size_t position = begin;
    if (!is_space(next_code_point(text, position))) break;
    end = begin;
  }
  return text.size() - end;
}

std::string with_ascii_digits(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const uint32_t code = next_code_point(text, i);
    const int digit = code < 0x80 ? -1 : u_charDigitValue(static_cast<UChar32>(code));
    append_code_point(out, digit < 0 ? code : '0' + static_cast<uint32_t>(digit));
  }
  return out;
}

std::string to_upper(std::string_view text) { return utf8(utf16(text).toUpper(icu::Locale::getRoot())); }
std::string to_lower(std::string_view text) { return utf8(utf16(text).toLower(icu::Locale::getRoot())); }
std::string case_fold(std::string_view text) { return utf8(utf16(text).foldCase()); }

std::string to_title(std::string_view text) {
  icu::UnicodeString out;
  bool in_word = false;
  for (size_t i = 0; i < text.size();) {
    const uint32_t code = next_code_point(text, i);
    if (in_word) {
      out += icu::UnicodeString(static_cast<UChar32>(code)).toLower(icu::Locale::getRoot());
    } else {
      append_title(out, code);
    }
    in_word = is_cased(code);
  }
  return utf8(out);
}

std::string capitalize(std::string_view text) {
  if (text.empty()) return {};
  size_t rest = 0;
  icu::UnicodeString out;
  append_title(out, next_code_point(text, rest));
  return utf8(out) + to_lower(text.substr(rest));
}

std::string swap_case(std::string_view text) {
  icu::UnicodeString out;
  for (size_t i = 0; i < text.size();) {
    const uint32_t code = next_code_point(text, i);
    icu::UnicodeString one(static_cast<UChar32>(code));
    out += u_isUUppercase(static_cast<UChar32>(code))   ? one.toLower(icu::Locale::getRoot())
           : u_isULowercase(static_cast<UChar32>(code)) ? one.toUpper(icu::Locale::getRoot())
                                                        : one;
  }
  return utf8(out);
}

bool is_alpha(std::string_view text) {
  return all(text, [](uint32_t code) { return u_isalpha(static_cast<UChar32>(code)) != 0; });
}
bool is_alnum(std::string_view text) {
  return all(text, [](uint32_t code) {
    return u_isalpha(static_cast<UChar32>(code)) != 0 || numeric_type(code) != U_NT_NONE;
  });
}
bool is_decimal(std::string_view text) {
  return all(text, [](uint32_t code) { return numeric_type(code) == U_NT_DECIMAL; });
}
bool is_digit(std::string_view text) {
  return all(text,
             [](uint32_t code) { return numeric_type(code) == U_NT_DECIMAL || numeric_type(code) == U_NT_DIGIT; });
}
bool is_numeric(std::string_view text) {
  return all(text, [](uint32_t code) { return numeric_type(code) != U_NT_NONE; });
}
bool all_space(std::string_view text) { return all(text, is_space); }

bool is_upper(std::string_view text) {
  bool cased = false;
  for (size_t i = 0; i < text.size();) {
    const auto code = static_cast<UChar32>(next_code_point(text, i));
    if (u_isULowercase(code) || u_istitle(code)) return false;
    cased = cased || u_isUUppercase(code);
  }
  return cased;
}

bool is_lower(std::string_view text) {
  bool cased = false;
  for (size_t i = 0; i < text.size();) {
    const auto code = static_cast<UChar32>(next_code_point(text, i));
    if (u_isUUppercase(code) || u_istitle(code)) return false;
    cased = cased || u_isULowercase(code);
  }
  return cased;
}

}  // namespace hexad::text::jinja
