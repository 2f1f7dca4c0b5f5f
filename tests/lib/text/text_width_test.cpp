// Columns of a terminal.
#include "lib/text/text_width.hpp"

#include <doctest/doctest.h>

#include <iterator>
#include <sstream>
#include <vector>

using namespace hexad::text;

namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// Texts of up to six characters of these, and longer ones of pieces that consoles write.
std::vector<std::string> many_texts() {
  std::vector<std::string> texts = {""};
  for (size_t begin = 0, length = 0; length < 6; ++length) {
    const size_t end = texts.size();
    for (; begin < end; ++begin)
      for (const char* next : {" ", "a", "\u65e5"}) texts.push_back(texts[begin] + next);
  }
  const char* const pieces[] = {"  indented", " ", "word", "  two  fields", "/a/path/that/is/long", "\n", "      "};
  for (const char* a : pieces)
    for (const char* b : pieces)
      for (const char* c : pieces) texts.push_back(std::string(a) + b + " " + c + " end");
  return texts;
}

}  // namespace

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

TEST_CASE("however narrow a terminal is, a text ends, has all its words, and no line wider than it need be") {
  CHECK(wrapped("  word", 1) == "  word");
  CHECK(wrapped("  one two", 1) == "  one\n  two");
  CHECK(wrapped("one two", 0) == "one\n  two");
  CHECK(wrapped("     ", 2) == "  ");
  for (const std::string& text : many_texts()) {
    const std::vector<std::string> words = words_of(text);
    for (size_t width = 0; width <= 20; ++width) {
      std::vector<std::string> found;
      std::istringstream lines(wrapped(text, width));
      for (std::string line; std::getline(lines, line);) {
        const std::vector<std::string> in_line = words_of(line);
        found.insert(found.end(), in_line.begin(), in_line.end());
        if (text_width(line) <= width || in_line.size() == 1) continue;
        FAIL_CHECK("\"" << text << "\" in " << width << " columns has the line \"" << line << "\"");
      }
      if (found != words)
        FAIL_CHECK("\"" << text << "\" in " << width << " columns: \"" << wrapped(text, width) << "\"");
    }
  }
}
