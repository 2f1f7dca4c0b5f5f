// Every tokenizer of the golden folder against ids, texts and stream chunks of the `tokenizers` library.
#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "lib/base/error.hpp"
#include "lib/text/tokenizer/step/stream_decoder.hpp"
#include "lib/text/tokenizer/tokenizer.hpp"
#include "tests/support/golden.hpp"

namespace {

using golden::Json;
using hexad::text::StreamDecoder;
using hexad::text::Tokenizer;
using Ids = std::vector<int32_t>;

std::set<std::string> golden_tokenizers() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden::folder() / "tokenizers")) {
    if (entry.path().extension() == ".json") names.insert(entry.path().stem().string());
  }
  return names;
}

void check_stream(const std::shared_ptr<const Tokenizer>& tokenizer, const Ids& ids, const Json& want) {
  StreamDecoder stream(tokenizer, false);
  if (want.is_object()) {
    CHECK_THROWS_AS(for (const int32_t id : ids) stream.push(id), hexad::Error);
    return;
  }
  REQUIRE(want.size() == ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto chunk = stream.push(ids[i]);
    const auto wanted = want[i].is_null() ? std::nullopt : std::optional(want[i].get<std::string>());
    CHECK(chunk == wanted);
  }
}

void check_case(const std::shared_ptr<const Tokenizer>& tokenizer, const Json& test_case) {
  const Json& inputs = test_case.at("inputs");
  const Json& expected = test_case.at("expected");
  Ids ids;
  if (inputs.contains("text_pair")) {
    const Ids pair =
        tokenizer->encode_pair(inputs.at("text").get<std::string>(), inputs.at("text_pair").get<std::string>(), true);
    CHECK(pair == expected.at("ids_special").get<Ids>());
    return;
  }
  if (inputs.contains("text")) {
    const auto text = inputs.at("text").get<std::string>();
    CHECK(tokenizer->encode(text, false) == expected.at("ids").get<Ids>());
    ids = expected.at("ids_special").get<Ids>();
    CHECK(tokenizer->encode(text, true) == ids);
  } else {
    ids = inputs.at("ids").get<Ids>();
  }
  bool unknown_id = false;
  for (size_t i = 0; expected.contains("tokens") && i < ids.size(); ++i) {
    const Json& token = expected.at("tokens").at(i);
    unknown_id = unknown_id || token.is_null();
    CHECK(tokenizer->id_to_token(ids[i]) == (token.is_null() ? "" : token.get<std::string>()));
  }
  // Where an id is out of range, "decode" was recorded with the library's default, which skips special tokens.
  CHECK(tokenizer->decode(ids, unknown_id) == expected.at("decode").get<std::string>());
  CHECK(tokenizer->decode(ids, true) == expected.at("decode_skip").get<std::string>());
  check_stream(tokenizer, ids, expected.at("stream"));
}

TEST_SUITE("golden") {
  TEST_CASE("tokenizers") {
    const auto names = golden_tokenizers();
    CHECK(!names.empty());
    for (const std::string& name : names) {
      const auto tokenizer = Tokenizer::load(golden::folder() / "tokenizers" / name);
      golden::for_each_case("tokenizers/" + name, [&](const Json& test_case) { check_case(tokenizer, test_case); });
    }
  }
}

}  // namespace
