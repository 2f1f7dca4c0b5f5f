// Normalizers in an order that no shared tokenizer.json has.
#include <doctest/doctest.h>

#include "lib/text/tokenizer/tokenizer.hpp"

using hexad::text::Tokenizer;
using Json = nlohmann::json;

TEST_CASE("a text of which Strip leaves nothing goes on through the steps behind it") {
  const Json right = {{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}};
  const Json left = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", false}};
  for (const Json& strip : {right, left}) {
    for (const char* next : {"ByteLevel", "Lowercase", "NFKD"}) {
      const Json normalizer = {{"type", "Sequence"}, {"normalizers", {strip, {{"type", next}}}}};
      const Json document = {{"version", "1.0"},
                             {"normalizer", normalizer},
                             {"model", {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}}}, {"merges", Json::array()}}}};
      const auto tokenizer = Tokenizer::from_json(document, "t.json");
      CAPTURE(normalizer.dump());
      CHECK(tokenizer->encode(" ", false).empty());
      CHECK(tokenizer->encode("\u3000 \t", false).empty());
      CHECK(tokenizer->encode(strip == left ? " ab" : "ab ", false) == std::vector<int32_t>{0, 1});
    }
  }
}
