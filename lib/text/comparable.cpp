#include "lib/text/comparable.hpp"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>

#include <algorithm>
#include <utility>

#include "lib/base/error.hpp"
#include "lib/text/unicode.hpp"

namespace hexad::text {
namespace {

void require(UErrorCode status, const char* what) {
  if (U_FAILURE(status)) fail(ErrorKind::internal, "ICU cannot {}: {}", what, u_errorName(status));
}

icu::StringPiece piece(std::string_view text) { return {text.data(), static_cast<int32_t>(text.size())}; }

std::string composed(const std::string& text) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* form = icu::Normalizer2::getNFCInstance(status);
  require(status, "load its normalization data");
  std::string result;
  icu::StringByteSink<std::string> sink(&result);
  form->normalizeUTF8(0, piece(text), sink, nullptr, status);
  require(status, "compose a text");
  return result;
}

std::string folded(const std::string& text) {
  UErrorCode status = U_ZERO_ERROR;
  std::string result;
  icu::StringByteSink<std::string> sink(&result);
  icu::CaseMap::utf8Fold(0, piece(text), sink, nullptr, status);
  require(status, "fold the case of a text");
  return result;
}

std::string with_single_blanks(std::string_view text) {
  std::string result;
  bool space = false;
  for (const char* at = text.data(); at < text.data() + text.size();) {
    const char* begin = at;
    if (char_classes()[next_char(at)] & kSpace) {
      space = true;
      continue;
    }
    if (std::exchange(space, false) && !result.empty()) result += ' ';
    result.append(begin, at);
  }
  return result;
}

}  // namespace

std::string comparable(std::string_view text, bool ignore_case) {
  std::string buffer;
  std::string result(valid_utf8(text, buffer));
  const auto is_ascii = [](char c) { return static_cast<uint8_t>(c) < 0x80; };
  if (std::ranges::all_of(result, is_ascii)) {
    if (ignore_case)
      std::ranges::transform(result, result.begin(),
                             [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  } else {
    result = composed(result);
    if (ignore_case) result = composed(folded(result));  // a folded text may need composing again
  }
  return with_single_blanks(result);
}

}  // namespace hexad::text
