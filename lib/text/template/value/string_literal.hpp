// String literals of templates.
#pragma once
#include <string>
#include <string_view>

namespace hexad::text::jinja {

// Replaces Python's escapes (\n, \t, \x41, \u00e9, \U0001f600, \101 ...); an unknown one stays as it is. Throws Fault.
std::string unescape(std::string_view text);

}  // namespace hexad::text::jinja
