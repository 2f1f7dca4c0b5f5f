// hexad/stop_strings.hpp: which token ends a completion at a text.
#include <doctest/doctest.h>
#include <hexad/stop_strings.hpp>

#include <map>
#include <numeric>
#include <vector>

using hexad::sdk::Detokenize;
using hexad::sdk::ends_at_stop_string;

namespace {

using Tokens = std::vector<int32_t>;
using Stops = std::vector<std::string>;

// Token 0 is "a", and so on; what is longer than a letter is in `words`.
Detokenize spelling(std::map<int32_t, std::string> words = {}) {
  return [words = std::move(words)](const int32_t* ids, int64_t count) {
    std::string text;
    for (int64_t i = 0; i < count; ++i) {
      const auto found = words.find(ids[i]);
      text += found == words.end() ? std::string(1, static_cast<char>('a' + ids[i])) : found->second;
    }
    return text;
  };
}

bool ends(const Tokens& tokens, int64_t sampled, const Stops& stops, const Detokenize& detokenize = spelling()) {
  return ends_at_stop_string(tokens, sampled, stops, detokenize);
}

}  // namespace

TEST_CASE("a completion ends at the token that completes one of the stop strings") {
  const Tokens tokens = {0, 1, 2, 3};  // abcd
  CHECK(!ends({0, 1}, 2, {"bc", "x"}));
  CHECK(ends({0, 1, 2}, 3, {"x", "bc"}));
  CHECK(ends(tokens, 4, {"d"}));
  CHECK(!ends(tokens, 4, {}));
  CHECK(!ends(tokens, 0, {"d"}));
  CHECK(ends({0, 30}, 2, {"ab"}, spelling({{30, "bxyz"}})));  // in the middle of the token's text
}

TEST_CASE("the prompt's text ends nothing") {
  CHECK(!ends({0, 1, 2}, 1, {"ab"}));
  CHECK(!ends({0, 1, 2}, 1, {"bc"}));  // nor what begins there
  CHECK(ends({0, 1, 2}, 2, {"bc"}));
}

TEST_CASE("only the text that can hold a new occurrence is looked at, whatever came before") {
  Tokens tokens(1000);
  std::iota(tokens.begin(), tokens.end(), 0);
  for (int32_t& token : tokens) token %= 26;
  int64_t most = 0;
  const Detokenize counting = [&, letters = spelling()](const int32_t* ids, int64_t count) {
    most = std::max(most, count);
    return letters(ids, count);
  };
  CHECK(!ends(tokens, 1000, {"bcd"}, counting));  // seen long ago
  CHECK(most <= 3 + 4 + 4);
  tokens.insert(tokens.end(), {1, 2, 3});
  CHECK(ends(tokens, 1003, {"bcd"}, counting));
}

TEST_CASE("tokens without text do not hide what they follow") {
  const Detokenize detokenize = spelling({{30, ""}});
  CHECK(ends({0, 1, 30, 30, 30, 2}, 6, {"bc"}, detokenize));
  CHECK(ends({0, 1, 2, 30}, 4, {"bc"}, detokenize));
}

TEST_CASE("a first token that is decoded in its own way moves no text into the window") {
  // As decoders that drop the space before the first word.
  const Detokenize detokenize = [](const int32_t* ids, int64_t count) {
    std::string text;
    for (int64_t i = 0; i < count; ++i) text += std::string(i > 0 ? " " : "") + static_cast<char>('a' + ids[i]);
    return text;
  };
  const Tokens tokens(20, 0);
  CHECK(ends(tokens, 1, {" a"}, detokenize));
  CHECK(!ends(tokens, 1, {"a a"}, detokenize));
  CHECK(ends(tokens, 2, {"a a"}, detokenize));
}
