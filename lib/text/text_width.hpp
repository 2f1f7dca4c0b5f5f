// Text in columns of a terminal.
#pragma once
#include <string>
#include <string_view>

namespace hexad::text {

// Columns that UTF-8 text takes: two for East Asian wide characters and emoji, none for combining marks.
size_t text_width(std::string_view text);

// Its beginning, "..." at the end where it was longer.
std::string cut_to_width(std::string_view text, size_t width);

// Cut, or filled with blanks, to `width`.
std::string padded(std::string_view text, size_t width);

// The same text in lines of at most `width` columns, those after the first indented by two. Breaks between fields (two
// blanks) if that leaves no line half empty, else between words; a word that is wider (a path, to be copied) stays
// whole. Line breaks stay.
std::string wrapped(std::string_view text, size_t width);

}  // namespace hexad::text
