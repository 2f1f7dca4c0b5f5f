#include "lib/text/unicode.hpp"

#include <unicode/uchar.h>
#include <unicode/uset.h>

#include <cstring>
#include <memory>

namespace hexad::text {
namespace {

uint8_t class_of_category(const char* name) {
  return name[0] == 'L' ? kLetter : name[0] == 'N' ? kNumber | kNumeric : 0;
}

bool is_in_unicode_8(UChar32 c) {
  UVersionInfo age;
  u_charAge(c, age);
  return age[0] <= 8;
}

UBool fill_range(const void* context, UChar32 start, UChar32 limit, UCharCategory category) {
  auto* table = static_cast<uint8_t*>(const_cast<void*>(context));
  const uint32_t mask = U_MASK(category);
  const uint8_t bits = mask & U_GC_L_MASK ? kLetter : mask & U_GC_N_MASK ? kNumber | kNumeric : 0;
  std::memset(table + start, bits, static_cast<size_t>(limit - start));
  for (UChar32 c = start; mask & U_GC_P_MASK && c < limit; ++c) table[c] = is_in_unicode_8(c) ? kPunctuation : 0;
  return true;
}

std::unique_ptr<uint8_t[]> build_classes() {
  auto table = std::make_unique<uint8_t[]>(0x110000);
  u_enumCharTypes(fill_range, table.get());
  for (const NewerRange& range : assigned_after_unicode_14()) {
    std::memset(table.get() + range.first, class_of_category(range.category), range.last - range.first + 1);
  }
  // Decimal numbers of Unicode 17.
  for (char32_t c = 0x11DE0; c <= 0x11DE9; ++c) table[c] = kNumeric;
  for (char32_t c = 0x16FF4; c <= 0x16FF6; ++c) table[c] = kNumeric;
  table[0x166D] = table[0x111C9] = kPunctuation;  // were, in Unicode 8
  for (char32_t c = 0; c < 0x3001; ++c) {
    if (u_isUWhiteSpace(static_cast<UChar32>(c))) table[c] |= kSpace;
  }
  table['\r'] |= kLineEnd;
  table['\n'] |= kLineEnd;
  return table;
}

// Lower case of the capitals that ICU 72 (Unicode 15) does not know, up to Unicode 17; 0 when not one of them.
char32_t lowercase_after_unicode_15(char32_t c) {
  if (c >= 0x10D50 && c <= 0x10D65) return c + 0x20;
  if (c >= 0x16EA0 && c <= 0x16EB8) return c + 0x1B;
  switch (c) {
    case 0xA7CB: return 0x264;
    case 0xA7DC: return 0x19B;
    case 0x1C89:
    case 0xA7CC:
    case 0xA7CE:
    case 0xA7D2:
    case 0xA7D4:
    case 0xA7DA: return c + 1;
    default: return 0;
  }
}

}  // namespace

const uint8_t* char_classes() {
  static const std::unique_ptr<uint8_t[]> table = build_classes();
  return table.get();
}

bool is_word_char(char32_t c) {
  const auto point = static_cast<UChar32>(c);
  const uint32_t mask = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  return char_classes()[c] & kLetter || U_GET_GC_MASK(point) & mask || u_hasBinaryProperty(point, UCHAR_ALPHABETIC) ||
         u_hasBinaryProperty(point, UCHAR_JOIN_CONTROL);
}

void append_lowercase(char32_t c, std::string& out) {
  if (c < 0x80) {
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  } else if (c == 0x130) {
    out += "i\xCC\x87";  // the only character with two in its lower case
  } else if (const char32_t newer = lowercase_after_unicode_15(c)) {
    append_utf8(newer, out);
  } else {
    append_utf8(static_cast<char32_t>(u_tolower(static_cast<UChar32>(c))), out);
  }
}

}  // namespace hexad::text
