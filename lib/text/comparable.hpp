// Texts in a form in which two that a reader takes for the same are the same bytes.
#pragma once
#include <string>
#include <string_view>

namespace hexad::text {

// `text` composed (NFC: an accent is one character with its letter, as far as there is one), each run of white space
// of Unicode's as one blank, none at either end. `ignore_case`: case folded, as Python's str.casefold: "STRASSE" is
// "straße". Bytes that are not UTF-8 count as U+FFFD.
std::string comparable(std::string_view text, bool ignore_case);

}  // namespace hexad::text
