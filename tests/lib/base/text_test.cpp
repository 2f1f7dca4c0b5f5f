// The helpers of messages: lists, suggestions, patterns.
#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lib/base/pattern.hpp"
#include "lib/base/text.hpp"

using namespace hexad;

TEST_CASE("lists in messages") {
  CHECK(joined(std::vector<std::string>{"a", "", "c"}) == "a, , c");
  CHECK(joined(std::vector<int64_t>{-1, 2}) == "-1, 2");
  CHECK(joined(std::vector<std::string>{}) == "");
  CHECK(joined(std::array<std::string_view, 2>{"x", "y"}, " or ") == "x or y");
}

TEST_CASE("suggestions are for typos") {
  const std::vector<std::string> known = {"grpo", "distillation", "dpo"};
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("gpro", "grpo") == 1);
  CHECK(did_you_mean("gpro", known) == ", did you mean 'grpo'?");
  CHECK(did_you_mean("distilation", known) == ", did you mean 'distillation'?");
  CHECK(did_you_mean("something else", known) == "");
  CHECK(did_you_mean("grpo", {}) == "");
  CHECK(did_you_mean("lr", std::vector<std::string>{"rm"}) == "");  // two edits make any word of two letters
  CHECK(did_you_mean("dop", known) == ", did you mean 'dpo'?");
  CHECK(did_you_mean("grpo", std::vector<std::string>{"grpo", "gpo"}) == ", did you mean 'gpo'?");
}

TEST_CASE("a pattern matches whole texts only") {
  const Pattern number("[0-9]+|[0-9]+\\.[0-9]");
  CHECK(number.matches("12"));
  CHECK(number.matches("1.5"));
  for (const char* text : {"", "x12", "12x", "12\n", "1.", "1.55"}) CHECK_FALSE(number.matches(text));
  CHECK_FALSE(number.matches(std::string_view("1\0", 2)));
  CHECK(number.matches(std::string(1 << 20, '1')));
  CHECK_THROWS_WITH(Pattern("(("), doctest::Contains("pattern ((: PCRE2 error"));
}
