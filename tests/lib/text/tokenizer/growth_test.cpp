// A tokenizer.json that a stranger wrote makes no more of a text than there is memory for.
#include <doctest/doctest.h>

#include "lib/base/error.hpp"
#include "lib/text/tokenizer/tokenizer.hpp"

using hexad::text::Tokenizer;
using Json = nlohmann::json;

namespace {

Json document(const Json& more) {
  Json json = {{"version", "1.0"},
               {"model", {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}}}, {"merges", Json::array()}}}};
  json.update(more);
  return json;
}

template <typename Action>
std::string failure(const Json& more, const Action& action) {
  try {
    action(*Tokenizer::from_json(document(more), "t.json"));
  } catch (const hexad::Error& error) {
    CHECK(error.exit_code() == 2);
    return error.what();
  }
  return "";
}

std::string encoding(const Json& more, const std::string& text) {
  return failure(more, [&](const Tokenizer& tokenizer) { (void)tokenizer.encode(text, true); });
}

Json replace(const std::string& from, const std::string& to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

void check_says(const std::string& message, const std::string& part) {
  CHECK_MESSAGE(message.find(part) != std::string::npos, message);
}

}  // namespace

TEST_CASE("normalizers that multiply a text are refused") {
  const Json bomb(6, replace("a", std::string(1000, 'a')));
  const std::string message = encoding({{"normalizer", {{"type", "Sequence"}, {"normalizers", bomb}}}}, "aaaaaa");
  check_says(message, "normalizer.normalizers[1]: makes 6000000 bytes of a text");
  check_says(message, "may become at most");
  const Json prepends(20, {{"type", "Prepend"}, {"prepend", std::string(1 << 17, 'a')}});
  check_says(encoding({{"normalizer", {{"type", "Sequence"}, {"normalizers", prepends}}}}, "b"),
             "normalizer.normalizers[8]: makes ");
}

TEST_CASE("sections share what a text may become") {
  const Json cut = {
      {"id", 2},         {"content", "<s>"}, {"special", true}, {"normalized", false}, {"single_word", false},
      {"lstrip", false}, {"rstrip", false}};
  std::string text;
  for (int i = 0; i < 40; ++i) text += "a<s>";
  check_says(
      encoding({{"normalizer", replace("a", std::string(1 << 16, 'b'))}, {"added_tokens", Json::array({cut})}}, text),
      "normalizer: makes 65536 bytes of a text");
}

TEST_CASE("what real tokenizers make of a text is taken") {
  const Json spaces = {
      {"type", "Sequence"},
      {"normalizers", {{{"type", "Prepend"}, {"prepend", "\u2581"}}, replace(" ", "\u2581"), {{"type", "NFKD"}}}}};
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "a \uFDFA";  // of which NFKD makes eighteen characters
  CHECK(encoding({{"normalizer", spaces}}, text).empty());
}

TEST_CASE("decoders that multiply a text are refused") {
  const Json bomb(6, replace("a", std::string(1000, 'a')));
  check_says(failure({{"decoder", {{"type", "Sequence"}, {"decoders", bomb}}}},
                     [](const Tokenizer& tokenizer) {
                       const std::vector<int32_t> ids(6, 0);
                       (void)tokenizer.decode(ids, false);
                     }),
             "decoder.decoders[1]: makes 2004000 bytes of tokens");
}

TEST_CASE("a template that copies a text again and again is refused") {
  const Json piece = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  check_says(encoding({{"post_processor",
                        {{"type", "TemplateProcessing"},
                         {"single", Json(257, piece)},
                         {"pair", Json::array()},
                         {"special_tokens", Json::object()}}}},
                      "a"),
             "\"single\" has more than 256 parts or 65536 token ids");
}
