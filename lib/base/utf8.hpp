// Where a text stops being UTF-8.
#pragma once
#include <cstddef>
#include <string_view>

namespace hexad {

// Bytes at the front of `text` that are ASCII.
size_t ascii_prefix(std::string_view text);

// Bytes at the front of `text` that are valid UTF-8. `broken`: if given, and there are more bytes, gets the size of the
// maximal part of a broken sequence that follows (Unicode 15, 3.9: what one U+FFFD replaces).
size_t utf8_prefix(std::string_view text, size_t* broken = nullptr);

}  // namespace hexad
