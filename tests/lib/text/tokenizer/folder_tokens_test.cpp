// What the files beside a tokenizer.json add: ids, texts and roles as transformers 5.24 gives them.
#include "lib/text/tokenizer/folder_tokens.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "lib/base/error.hpp"
#include "lib/text/tokenizer/tokenizer.hpp"
#include "lib/text/tokenizer/tokenizer_config.hpp"
#include "lib/text/tokenizer/tokenizer_files.hpp"

namespace {

using hexad::text::Tokenizer;
using hexad::text::TokenizerConfig;
using nlohmann::json;
using Ids = std::vector<int32_t>;
namespace fs = std::filesystem;

// Letters a to h are 0 to 7, < > / | and the blank 8 to 12, "</s>" 13 of the vocabulary; "<s>" is added as 14.
json plain_tokenizer() {
  json vocab = json::object();
  for (const char c : std::string("abcdefgh<>/| ")) vocab[std::string(1, c)] = vocab.size();
  vocab["</s>"] = 13;
  return {{"added_tokens", {{{"id", 14}, {"content", "<s>"}, {"normalized", false}, {"special", true}}}},
          {"normalizer", {{"type", "Lowercase"}}},
          {"decoder", {{"type", "Fuse"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", json::array()}}}};
}

json token(const char* content, bool special = true) {
  return {{"content", content},  {"lstrip", false},      {"rstrip", false},
          {"normalized", false}, {"single_word", false}, {"special", special}};
}

// A folder that goes away with the test.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("hexad_folder_tokens_" + std::to_string(::getpid()));
  explicit Folder(const std::map<std::string, json>& files) {
    fs::remove_all(path);
    fs::create_directories(path);
    write("tokenizer.json", plain_tokenizer());
    for (const auto& [name, content] : files) write(name, content);
  }
  ~Folder() { fs::remove_all(path); }
  void write(const std::string& name, const json& content) const { std::ofstream(path / name) << content.dump(); }
  Ids encode(const char* text) const { return Tokenizer::load(path)->encode(text, false); }
  std::string without_special(const char* text) const {
    const auto tokenizer = Tokenizer::load(path);
    return tokenizer->decode(tokenizer->encode(text, false), true);
  }
  std::map<std::string, std::string> roles() const { return TokenizerConfig::load(path).special_tokens; }
  std::string failure() const {
    try {
      Tokenizer::load(path);
      return "loaded";
    } catch (const hexad::Error& error) {
      return error.what();
    }
  }
};

constexpr const char *kConfig = "tokenizer_config.json", *kMap = "special_tokens_map.json",
                     *kAdded = "added_tokens.json";

}  // namespace

TEST_CASE("a token with a role is one of the tokenizer's, also where tokenizer.json has it as a word alone") {
  CHECK(Folder({{kConfig, json::object()}}).encode("a</s>b<s>") == Ids{0, 8, 10, 9, 1, 14});
  CHECK(Folder({{kConfig, {{"eos_token", "</s>"}}}}).encode("a</s>b<s>") == Ids{0, 13, 1, 14});
  CHECK(Folder({{kConfig, {{"eos_token", "</s>"}}}}).without_special("a</s>b<s>") == "ab");
  CHECK(Folder({{kMap, {{"eos_token", "</s>"}}}}).encode("a</s>") == Ids{0, 13});  // without a config
  const Folder nowhere({{kConfig, {{"pad_token", "<p>"}}}});
  CHECK(Tokenizer::load(nowhere.path)->vocab_size() == 16);
  CHECK(Tokenizer::load(nowhere.path / "tokenizer.json")->vocab_size() == 15);  // the file alone
}

TEST_CASE("added_tokens_decoder adds tokens, and changes flags") {
  const json decoder = {{"14", token("<s>")}, {"15", token("<a>")}, {"16", token("<b>", false)}};
  const Folder added({{kConfig, {{"added_tokens_decoder", decoder}, {"eos_token", "<a>"}}}});
  CHECK(added.encode("a<b>b<a>") == Ids{0, 16, 1, 15});
  CHECK(added.without_special("a<b>b<a>") == "a<b>b");
  json strips = token("<s>");
  strips["rstrip"] = true;
  CHECK(Folder({{kConfig, {{"added_tokens_decoder", {{"14", strips}}}}}}).encode("a<s> b") == Ids{0, 14, 1});
  // The older files have no say beside it.
  const Folder older({{kConfig, {{"added_tokens_decoder", {{"14", token("<s>")}}}, {"bos_token", "<s>"}}},
                      {kMap, {{"bos_token", "</s>"}}},
                      {kAdded, {{"<a>", 15}}}});
  CHECK(older.encode("a<a></s>") == Ids{0, 8, 0, 9, 8, 10, 9});
  CHECK(older.roles() == std::map<std::string, std::string>{{"bos_token", "<s>"}});
}

TEST_CASE("special_tokens_map.json goes before the config, added_tokens.json adds") {
  const Folder map(
      {{kConfig, {{"bos_token", "<s>"}}},
       {kMap,
        {{"bos_token", "</s>"}, {"eos_token", token("</s>")}, {"additional_special_tokens", json::array({"<a>"})}}}});
  CHECK(map.encode("a<a></s>") == Ids{0, 15, 13});
  CHECK(map.roles() == std::map<std::string, std::string>{{"bos_token", "</s>"}, {"eos_token", "</s>"}});
  // A token without a role is normalized: "<A>" is found as the "<a>" that Lowercase makes of it.
  const Folder listed({{kConfig, {{"eos_token", "<b>"}}}, {kAdded, {{"<b>", 16}, {"<A>", 15}}}});
  CHECK(listed.encode("a<b><a><A>") == Ids{0, 16, 15, 15});
  CHECK(listed.without_special("a<b><a><A>") == "a<a><a>");
  // An id that tokenizer.json gives to another token is that one's.
  CHECK(Folder({{kAdded, {{"<b>", 14}}}}).encode("a<b>") == Ids{0, 8, 1, 9});
}

TEST_CASE("special tokens of the model's own") {
  const Folder folder({{kConfig, {{"extra_special_tokens", {{"image_token", "<a>"}}}, {"video_token", "<b>"}}}});
  CHECK(folder.encode("a<a><b>") == Ids{0, 16, 15});
  CHECK(folder.roles() == std::map<std::string, std::string>{{"image_token", "<a>"}, {"video_token", "<b>"}});
  // As transformers 5 saves them; and a token in its object form. Other objects under such keys are no tokens.
  const Folder saved({{kConfig,
                       {{"model_specific_special_tokens", {{"image_token", "<a>"}}},
                        {"video_token", token("<b>")},
                        {"audio_token", {{"rate", 16}}}}}});
  CHECK(saved.encode("a<a><b>") == Ids{0, 16, 15});
  CHECK(saved.roles() == std::map<std::string, std::string>{{"image_token", "<a>"}, {"video_token", "<b>"}});
  const Folder roles({{kConfig, {{"unk_token", "<u>"}, {"sep_token", nullptr}, {"add_bos_token", true}}}});
  CHECK(roles.roles() == std::map<std::string, std::string>{{"unk_token", "<u>"}});
}

TEST_CASE("files that disagree on an id, or are malformed, are refused by name") {
  const Folder gap({{kAdded, {{"<b>", 20}}}});
  CHECK(gap.failure() ==
        (gap.path / kAdded).string() + ": \"<b>\" has the id 20, but " + (gap.path / "tokenizer.json").string() +
            ", which lacks it, would give it 15. The files are of different tokenizers, or of one with a gap in its "
            "ids: take tokenizer.json from where the model was saved last");
  const auto ends = [](const std::map<std::string, json>& files, const std::string& message) {
    const Folder folder(files);
    CHECK(folder.failure() == (folder.path / message).string());
  };
  ends({{kConfig, {{"added_tokens_decoder", {{"x", token("<a>")}}}}}},
       "tokenizer_config.json.added_tokens_decoder: \"x\" is no token id");
  ends({{kConfig, {{"added_tokens_decoder", {{"15", {{"special", true}}}}}}}},
       "tokenizer_config.json.added_tokens_decoder.15: \"content\" is missing; wanted a string");
  ends({{kConfig, {{"eos_token", 3}}}}, "tokenizer_config.json: \"eos_token\" wants a string, got 3");
  ends({{kMap, {{"eos_token", 3}}}}, "special_tokens_map.json: \"eos_token\" wants a string, got 3");
  ends({{kMap, json::array()}}, "special_tokens_map.json: not a JSON object");
  ends({{kAdded, {{"<a>", "15"}}}}, "added_tokens.json: the id of \"<a>\" wants a whole number from 0");
  ends({{kConfig, {{"additional_special_tokens", 3}}}},
       "tokenizer_config.json: \"additional_special_tokens\" wants a list or an object of tokens");
}

TEST_CASE("files of a tokenizer whose names are the model's own") {
  const Folder folder({{"qwen.tiktoken", 1},
                       {"tokenizer.model.v7", 1},
                       {"tokenization_kimi.py", 1},
                       {"vocab.bpe", 1},
                       {"modeling_kimi.py", 1}});
  CHECK(hexad::text::tokenizer_files(folder.path) == std::vector<std::string>{"tokenizer.json", "vocab.bpe",
                                                                              "qwen.tiktoken", "tokenization_kimi.py",
                                                                              "tokenizer.model.v7"});
}

TEST_CASE("the files of a tokenizer, templates in their folder among them") {
  const Folder folder({{kConfig, json::object()}, {kAdded, json::object()}, {"config.json", json::object()}});
  fs::create_directories(folder.path / "additional_chat_templates/x.jinja");  // a folder is no template
  folder.write("additional_chat_templates/tool_use.jinja", "t");
  folder.write("additional_chat_templates/notes.txt", "n");
  folder.write("merges.txt", "m");
  CHECK(hexad::text::tokenizer_files(folder.path) ==
        std::vector<std::string>{"tokenizer.json", kConfig, kAdded, "merges.txt",
                                 "additional_chat_templates/tool_use.jinja"});
  CHECK(hexad::text::tokenizer_files(folder.path / "nowhere").empty());
}
