// The helpers of messages: lists, suggestions, patterns.
#include <array>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "lib/base/error.hpp"
#include "lib/base/pattern.hpp"
#include "lib/base/text.hpp"
#include "lib/base/utf8.hpp"

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

TEST_CASE("a text is cut between characters, from either end") {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z";  // 1, 2, 3, 4 and 1 bytes
  const size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};
  for (size_t most = 0; most <= text.size(); ++most) CHECK(utf8_front(text, most).size() == ends[most]);
  const size_t sizes[] = {0, 1, 1, 1, 1, 5, 5, 5, 8, 8, 10, 11};
  for (size_t most = 0; most <= text.size(); ++most) {
    CHECK(utf8_back(text, most).size() == sizes[most]);
    CHECK(text.ends_with(utf8_back(text, most)));
  }
  CHECK(utf8_front("abc", 10) == "abc");
  CHECK(utf8_back("abc", 10) == "abc");
  const std::string broken(9, '\x80');  // no character: cut where asked
  CHECK(utf8_front(broken, 5).size() == 5);
  CHECK(utf8_back(broken, 5).size() == 5);
}

TEST_CASE("the message of an error is valid UTF-8, whatever it quotes") {
  CHECK(std::string(Error(ErrorKind::data, "got '\xff', wanted '\xC3\xA9'").what()) ==
        "got '\xEF\xBF\xBD', wanted '\xC3\xA9'");
  CHECK(std::string(Error(ErrorKind::data, std::string("cut\xE2\x82")).what()) == "cut\xEF\xBF\xBD");
}

TEST_CASE("a choice by another name of an element type is found, and other words by nearness") {
  const std::vector<std::string> types = {"bfloat16", "float16", "float32"}, short_types = {"fp32", "fp64"};
  const auto meant = [](const char* word, const std::vector<std::string>& choices) {
    return hexad::nearest_choice(word, choices).value_or("none");
  };
  CHECK(meant("bf16", types) == "bfloat16");
  CHECK(meant("half", types) == "float16");
  CHECK(meant("float", types) == "float32");
  CHECK(meant("torch.float16", types) == "float16");
  CHECK(meant("bfloat61", types) == "bfloat16");
  CHECK(meant("double", types) == "none");
  CHECK(meant("fp16", short_types) == "fp32");  // float16 is none of them: by nearness
  CHECK(meant("float32", types) == "float16");  // never the word itself
}
