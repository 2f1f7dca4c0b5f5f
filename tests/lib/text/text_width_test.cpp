// Columns of a terminal.
#include "lib/text/text_width.hpp"

#include <doctest/doctest.h>

using namespace hexad::text;

TEST_CASE("characters take no, one or two columns") {
  CHECK(text_width("abc") == 3);
  CHECK(text_width("caf\u00e9") == 4);
  CHECK(text_width("e\u0301") == 1);
  CHECK(text_width("\u65e5\u672c\U0001f600") == 6);
  CHECK(text_width("\xff\xe6\x97") == 3);  // bytes that are not UTF-8: one each
}

TEST_CASE("cutting keeps characters whole") {
  CHECK(cut_to_width("abcdef", 6) == "abcdef");
  CHECK(cut_to_width("abcdefg", 6) == "abc...");
  CHECK(cut_to_width("\u65e5\u672c\u65e5\u672c", 6) == "\u65e5...");
  CHECK(cut_to_width("abc", 2) == "..");
  CHECK(padded("ab", 4) == "ab  ");
  CHECK(padded("\u65e5", 4) == "\u65e5  ");
}

TEST_CASE("lines break between fields, then between words, and not within a word") {
  CHECK(wrapped("short", 10) == "short");
  CHECK(wrapped("one two  three four", 12) == "one two\n  three four");
  CHECK(wrapped("one two three four", 10) == "one two\n  three\n  four");
  CHECK(wrapped("backend   dtensor 0.1.0 (path)", 24) == "backend   dtensor 0.1.0\n  (path)");
  CHECK(wrapped("a-very-long-word next", 8) == "a-very-long-word\n  next");
  CHECK(wrapped("ab\ncd ef", 5) == "ab\ncd ef");
  CHECK(wrapped("ab\n\ncd efgh", 5) == "ab\n\ncd\n  efgh");
  CHECK(wrapped("", 5).empty());
  CHECK(wrapped("  indented words", 12) == "  indented\n  words");
}
