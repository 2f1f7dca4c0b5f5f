// Splitting, stripping and replacing, as Python's str does it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/template/budget.hpp"

namespace hexad::text::jinja {

// Without white space at the chosen ends.
std::string_view strip(std::string_view text, bool left, bool right);
// Without characters of the set at the chosen ends.
std::string_view strip_characters(std::string_view text, std::string_view set, bool left, bool right);

// Pieces between separators (not empty); at most `most` splits when it is not negative, counted from the right if
// asked.
std::vector<std::string_view> split(std::string_view text, std::string_view separator, int64_t most, bool from_right);
// Pieces between runs of white space; none is empty.
std::vector<std::string_view> split_space(std::string_view text, int64_t most, bool from_right);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

// The first `count` (all, when negative) occurrences of `old` replaced.
std::string replace(std::string_view text, std::string_view old, std::string_view with, int64_t count, Budget& budget);

}  // namespace hexad::text::jinja
