// Tokenizers and chat templates into GGUF metadata and back: the same ids for every text.
#include "app/convert/gguf_text.hpp"

#include <doctest/doctest.h>

#include "app/convert/gguf.hpp"
#include "app/convert/gguf_pre_tokenizer.hpp"
#include "lib/base/error.hpp"
#include "lib/text/template/chat_template.hpp"
#include "lib/text/tokenizer/tokenizer.hpp"
#include "tests/app/convert/tiny_folder.hpp"
#include "tests/support/golden.hpp"

using namespace hexad;
using namespace hexad::convert;
using tensorfile::Gguf;
using text::Tokenizer;
namespace fs = std::filesystem;

namespace {

// The metadata of a folder's tokenizer in a file without weights.
Gguf written(const TempFolder& folder, const fs::path& from, int64_t rows, const std::vector<Json>& configs = {}) {
  tensorfile::GgufEntries entries = gguf_text(from, rows, configs).entries;
  entries.emplace_back("general.architecture", std::string("llama"));
  entries.emplace_back("llama.context_length", uint32_t{128});
  tensorfile::GgufWriter(folder / "text.gguf", entries, {}).finish();
  return Gguf::open(folder / "text.gguf");
}

std::shared_ptr<const Tokenizer> read_back(const Gguf& gguf) {
  return Tokenizer::from_json(nlohmann::json::parse(gguf_tokenizer(gguf).dump()), "made");
}

const std::vector<std::string> kTexts = {"",
                                         " ",
                                         "\n\n \t\r\n",
                                         "hello hell 12 121212",
                                         "I'Ve WE'LL it's",
                                         "<|start|>hello<|end|> <tool>x</tool>",
                                         "<|start| >[PAD264][PAD270]",
                                         "e\u0301\u00e9 \u0130\u1e9b\u0323",  // what NFC changes
                                         "\U0001f999\U0001f468\u200d\U0001f469 \u4f60\u597d \u0e01\u0e33",
                                         std::string("a\0b", 3),
                                         "\xff\xfe broken \xe2\x82",
                                         std::string(300, ' ') + "x"};

void check_refusal(const Json& tokenizer, const std::string& message, int64_t rows = kTinyRows) {
  TempFolder folder;
  write_tiny_text(folder.path(), tokenizer, {{"eos_token", "<|end|>"}});
  CAPTURE(message);
  CHECK_THROWS_WITH_AS(gguf_text(folder.path(), rows, {}),
                       doctest::Contains(((folder / "tokenizer.json").string() + ": " + message).c_str()), Error);
}

}  // namespace

TEST_CASE("a tokenizer gives the same ids behind its way through a GGUF file") {
  TempFolder folder;
  write_tiny_text(folder.path(), tiny_tokenizer(), {{"eos_token", "<|end|>"}});
  const auto before = Tokenizer::load(folder.path()), after = read_back(written(folder, folder.path(), kTinyRows));
  for (const std::string& text : kTexts) {
    CAPTURE(text);
    const std::vector<int32_t> ids = before->encode(text, true);
    CHECK(after->encode(text, true) == ids);
    CHECK(after->decode(ids, false) == before->decode(ids, false));
    CHECK(after->decode(ids, true) == before->decode(ids, true));
  }
  CHECK(after->vocab_size() == before->vocab_size());  // rows without a token get none
}

TEST_SUITE_BEGIN("golden");

TEST_CASE("published ways to split text give the ids of the tokenizers library behind a GGUF file too") {
  for (const auto& [name, pre] :
       {std::pair("llama3_style", "llama-bpe"), {"qwen2_style", "qwen2"}, {"smollm2", "gpt-2"}}) {
    CAPTURE(name);
    TempFolder folder;
    const fs::path from = golden::folder() / "tokenizers" / name;
    const Gguf gguf = written(folder, from, Tokenizer::load(from)->vocab_size() + 3);
    CHECK(gguf.get<std::string>(kPre) == pre);
    const auto tokenizer = read_back(gguf);
    golden::for_each_case("tokenizers/" + std::string(name), [&](const golden::Json& test) {
      const golden::Json &inputs = test["inputs"], &expected = test["expected"];
      if (!inputs.contains("text") || inputs.contains("text_pair")) return;
      const std::string text = inputs["text"];
      CHECK(tokenizer->encode(text, false) == expected["ids"].get<std::vector<int32_t>>());
      CHECK(tokenizer->encode(text, true) == expected["ids_special"].get<std::vector<int32_t>>());
    });
  }
}

TEST_SUITE_END();

TEST_CASE("types of tokens, and rows of the model without one") {
  TempFolder folder;
  Json tokenizer = tiny_tokenizer();
  tokenizer["added_tokens"].push_back({{"id", 264}, {"content", "<|fim|>"}, {"special", false}, {"rstrip", true}});
  write_tiny_text(folder.path(), tokenizer, {{"eos_token", "<|end|>"}});
  const GgufText text = gguf_text(folder.path(), kTinyRows, {});
  REQUIRE(text.notes.size() == 1);
  CHECK(text.notes[0] ==
        (folder / "tokenizer.json").string() + ": token \"<|fim|>\" has rstrip, which llama.cpp does not know");
  const Gguf gguf = written(folder, folder.path(), kTinyRows);
  const auto tokens = gguf.get<std::vector<std::string>>("tokenizer.ggml.tokens");
  const auto types = gguf.get<std::vector<int64_t>>("tokenizer.ggml.token_type");
  REQUIRE(tokens.size() == kTinyRows);
  REQUIRE(types.size() == kTinyRows);
  CHECK(types['a'] == kNormal);
  CHECK(tokens[257] == "<|end|>");
  CHECK(types[257] == kControl);
  CHECK(types[263] == kUserDefined);
  CHECK(types[264] == kControl);  // it looks like one
  CHECK(tokens[271] == "[PAD271]");
  CHECK(types[271] == kUnused);
  CHECK(gguf.get<std::vector<std::string>>("tokenizer.ggml.merges")[3] == "\u0120 hell");
}

TEST_CASE("special tokens: of tokenizer_config.json, then of the others; further ends as ends of a turn") {
  TempFolder folder;
  write_tiny_text(folder.path(), tiny_tokenizer(), {{"eos_token", "<|end|>"}, {"pad_token", "<tool>"}});
  const std::vector<Json> configs = {{{"eos_token_id", {5, 257, 6}}, {"temperature", 0.5}},
                                     {{"eos_token_id", 7}, {"bos_token_id", 256}, {"pad_token_id", 1}}};
  const GgufText text = gguf_text(folder.path(), kTinyRows, configs);
  REQUIRE(text.notes.size() == 1);
  CHECK(text.notes[0] == folder.path().string() + ": of 4 tokens that end a text GGUF has room for 3");
  const Gguf gguf = written(folder, folder.path(), kTinyRows, configs);
  CHECK(gguf.get<int64_t>("tokenizer.ggml.bos_token_id") == 256);
  CHECK(gguf.get<int64_t>("tokenizer.ggml.eos_token_id") == 257);
  CHECK(gguf.get<int64_t>("tokenizer.ggml.padding_token_id") == 263);
  CHECK(gguf_generation_config(gguf)["eos_token_id"] == Json::array({257, 5, 6}));
  CHECK(gguf_tokenizer_config(gguf)["eos_token"] == "<|end|>");
  CHECK(gguf_tokenizer_config(gguf)["pad_token"] == "<tool>");
  CHECK_FALSE(gguf_tokenizer_config(gguf).contains("unk_token"));
}

TEST_CASE("what stands around a text: its beginning and its end") {
  Json tokenizer = tiny_tokenizer();
  const auto special = [](const char* token) { return Json{{"SpecialToken", {{"id", token}, {"type_id", 0}}}}; };
  const Json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const auto around = [&](const Json& single) {
    const auto known = [](const char* token, int id) {
      return Json{{"id", token}, {"ids", Json::array({id})}, {"tokens", Json::array({token})}};
    };
    tokenizer["post_processor"] = {
        {"type", "TemplateProcessing"},
        {"single", single},
        {"pair", {{{"Sequence", {{"id", "A"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}}},
        {"special_tokens", {{"<|start|>", known("<|start|>", 256)}, {"<|end|>", known("<|end|>", 257)}}}};
  };
  TempFolder folder;
  const auto ids = [&](const Json& single) {
    around(single);
    write_tiny_text(folder.path(), tokenizer, {{"bos_token", "<|start|>"}, {"eos_token", "<|end|>"}});
    const Gguf gguf = written(folder, folder.path(), kTinyRows);
    const std::vector<int32_t> got = read_back(gguf)->encode("a", true);
    CHECK(got == Tokenizer::load(folder.path())->encode("a", true));
    return got;
  };
  CHECK(ids(Json::array({text})) == std::vector<int32_t>{'a'});
  CHECK(ids({special("<|start|>"), text}) == std::vector<int32_t>{256, 'a'});
  CHECK(ids({special("<|start|>"), text, special("<|end|>")}) == std::vector<int32_t>{256, 'a', 257});
  around({text, special("<|start|>")});
  check_refusal(tokenizer,
                "cannot be written as GGUF: its post_processor puts other tokens than bos_token before a text");
}

TEST_CASE("chat templates, the one for tools among them") {
  TempFolder folder;
  const auto back = [&](const Json& config) {
    write_tiny_text(folder.path(), tiny_tokenizer(), config);
    return gguf_tokenizer_config(written(folder, folder.path(), kTinyRows)).value("chat_template", Json());
  };
  CHECK(back({{"eos_token", "<|end|>"}}).is_null());
  CHECK(back({{"chat_template", "{{ a }}\n"}}) == "{{ a }}\n");
  const Json both = {{{"name", "default"}, {"template", "{{ a }}"}}, {{"name", "tool_use"}, {"template", "{{ b }}"}}};
  CHECK(back({{"chat_template", both}}) == both);
  folder.write("chat_template.jinja", "{{ file }}");
  CHECK(back({{"chat_template", "{{ a }}"}}) == "{{ file }}");
}

TEST_CASE("tokenizers that llama.cpp has not") {
  const auto refused = [](const char* key, const Json& value, const std::string& message) {
    Json tokenizer = tiny_tokenizer();
    tokenizer[key] = value;
    check_refusal(tokenizer, message);
  };
  const std::string cannot = "cannot be written as GGUF: ";
  refused("decoder", {{"type", "Fuse"}}, cannot + "it is no byte-level BPE (GPT-2, Llama 3, Qwen and their like)");
  Json fallback = tiny_tokenizer()["model"];
  fallback["byte_fallback"] = true;
  refused("model", fallback, cannot + "it is no byte-level BPE");
  refused("normalizer", {{"type", "Lowercase"}},
          cannot + "llama.cpp has no normalizer but NFC, this one is {\"type\":\"Lowercase\"}");
  refused("pre_tokenizer", nullptr, cannot + "llama.cpp has no name for its pre-tokenizer, which is null");
  refused("pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", true}},
          cannot + "llama.cpp has no name for its pre-tokenizer, which is {\"add_prefix_space\":true");
  Json ignoring = tiny_tokenizer()["model"];
  ignoring["ignore_merges"] = true;
  refused("model", ignoring, cannot + "llama.cpp has no name for its pre-tokenizer with ignore_merges, which is");
  check_refusal(tiny_tokenizer(), "has ids up to 263, the model has rows for 263: they do not belong together", 263);
  TempFolder folder;
  CHECK_THROWS_WITH_AS(gguf_text(folder.path(), 1, {}), doctest::Contains("tokenizer.json"), Error);
}

TEST_CASE("every pre-tokenizer that is known by a name is known by what it does") {
  for (const std::string& name : pre_tokenizer_names()) {
    CAPTURE(name);
    const GgufPreTokenizer& pre = *find_pre_tokenizer(name);
    const auto json = nlohmann::json::parse(pre_tokenizer_json(pre).dump());
    const auto found = pre_tokenizer_name(json, pre.ignore_merges, pre.nfc);
    REQUIRE(found.has_value());
    CHECK(*found == pre.names.front());
  }
}
