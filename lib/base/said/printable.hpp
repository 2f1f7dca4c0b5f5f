// What a stranger wrote (a plugin, a program, a model, a file's name), as it may stand on a terminal or in a log.
#pragma once
#include <string>
#include <string_view>

namespace hexad {

// The same text, with characters that a terminal would obey shown by number: \x1b (control characters but line breaks
// and tabs, and bytes that are not UTF-8) or \u009b (U+007F to U+009F, and marks that turn the direction of a text).
// JSON that went through it is the same JSON.
std::string printable(std::string_view text);

// Without line breaks and tabs, too: what is quoted within a line.
std::string one_line(std::string_view text);

// printable() with two blanks after each line break: what is below its first line is no line of its own.
std::string indented(std::string_view text);

}  // namespace hexad
