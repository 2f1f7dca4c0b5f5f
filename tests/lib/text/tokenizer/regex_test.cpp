// Regular expressions whose syntax PCRE2 lacks or reads otherwise, against pieces that `tokenizers` 0.23 splits off
// (pre_tokenizers.Split, "isolated").
#include "lib/text/tokenizer/pattern/regex.hpp"

#include <doctest/doctest.h>

#include "lib/base/error.hpp"

namespace {

using hexad::text::Regex;
using Pieces = std::vector<std::string>;

Pieces split(const std::string& pattern, const std::string& text) {
  std::vector<Regex::Match> matches;
  Regex(pattern, "t").find_all(text, matches);
  Pieces pieces;
  size_t from = 0;
  for (const Regex::Match& match : matches) {
    if (match.begin > from) pieces.push_back(text.substr(from, match.begin - from));
    if (match.end > match.begin) pieces.push_back(text.substr(match.begin, match.end - match.begin));
    from = match.end;
  }
  if (from < text.size()) pieces.push_back(text.substr(from));
  return pieces;
}

std::string failure(const std::string& pattern) {
  try {
    [[maybe_unused]] const Regex compiled(pattern, "t");
    return "compiled";
  } catch (const hexad::Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("intersections of classes, as the pre-tokenizer of Kimi K2 has them") {
  const std::string kimi = R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)"
                           R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)"
                           R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  CHECK(split(kimi, "ab中文Cd 1234") == Pieces{"ab", "中文", "Cd", " ", "123", "4"});
  CHECK(split("[a-z&&[^aeiou]]+", "hexad") == Pieces{"h", "e", "x", "a", "d"});
  CHECK(split("[^a-z&&[^x]]+", "aXx1") == Pieces{"a", "Xx1"});
  CHECK(split("[a-z&&b-y&&[^m]]+", "abmyz") == Pieces{"a", "b", "m", "y", "z"});
  CHECK(split("[a-z&&^b]+", "a^bc") == Pieces{"a^", "b", "c"});
  CHECK(split("[a&&]+", "ab") == Pieces{"ab"});
  CHECK(split("[a-z&&[^b]]{2,}", "acbaca") == Pieces{"ac", "b", "aca"});
  CHECK(split("(?<=[a-z&&[^b]])[0-9]+", "b1a2") == Pieces{"b1a", "2"});
  const std::string letters(200'000, 'A');  // a long run ends in no limit of PCRE2's
  CHECK(split(kimi, letters + "a") == Pieces{letters + "a"});
}

TEST_CASE("classes in classes, as the pre-tokenizer of BLOOM has them") {
  CHECK(split(R"( ?[^(\s|[.,!?…。，、।۔،])]+)", "ab, cd(e") == Pieces{"ab", ",", " cd", "(", "e"});
  CHECK(split("[a[bc]d]+", "abcde") == Pieces{"abcd", "e"});
  CHECK(split("[^[abc][^d]]+", "abd") == Pieces{"ab", "d"});
  CHECK(split("[[a-c]-z]+", "b-zy") == Pieces{"b-z", "y"});
  CHECK(split("[a[-z]]+", "a-zb") == Pieces{"a-z", "b"});
  CHECK(split("[[a-]z]+", "a-zb") == Pieces{"a-z", "b"});
  CHECK(split(R"([\W_]+)", "a_-b") == Pieces{"a", "_-", "b"});
  CHECK(split(R"([^\P{L}x]+)", "axb1") == Pieces{"a", "x", "b", "1"});
  CHECK(split(R"([-\s]+)", "a - b") == Pieces{"a", " - ", "b"});
}

TEST_CASE("a script is what is of it, not what is used in it") {
  CHECK(split(R"([\p{Han}]+)", "文。") == Pieces{"文", "。"});
  CHECK(split(R"([\p{Hiragana}]+)", "あー") == Pieces{"あ", "ー"});
}

TEST_CASE("ranges that end or begin with a set are refused, as there") {
  CHECK(failure(R"([\s-z])") ==
        "t: regex [\\s-z]: a range that begins with a set of characters is not supported (at character 4)");
  CHECK(failure(R"([a-\s])") ==
        "t: regex [a-\\s]: a range that ends with a set of characters is not supported (at character 3)");
  CHECK(failure("[a-[bc]]") ==
        "t: regex [a-[bc]]: a range that ends with a set of characters is not supported (at character 3)");
  CHECK(failure("[a") == "t: regex [a: a class without its ] is not supported (at character 3)");
}

TEST_CASE("categories by their long names") {
  CHECK(split(R"(\p{Letter}+)", "ab1") == Pieces{"ab", "1"});
  CHECK(split(R"(\p{Lowercase_Letter}+)", "abC") == Pieces{"ab", "C"});
  CHECK(split(R"(\p{Punct}+)", "a!?$+b") == Pieces{"a", "!?", "$+b"});
  CHECK(split(R"(\p{Word}+)", "a_b c") == Pieces{"a_b", " ", "c"});
  CHECK(split(R"([\p{Other_Letter}]+)", "a漢b") == Pieces{"a", "漢", "b"});
  CHECK(failure(R"(\p{Lettre})").find("does not compile") != std::string::npos);
}
