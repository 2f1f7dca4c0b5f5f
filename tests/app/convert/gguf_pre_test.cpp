// How text is split by the pre-tokenizers that GGUF files name, and by a file that names none.
#include <doctest/doctest.h>

#include "app/convert/convert.hpp"
#include "app/convert/gguf.hpp"
#include "app/convert/gguf_pre_tokenizer.hpp"
#include "lib/text/tokenizer/tokenizer.hpp"
#include "tests/app/convert/tiny_gguf.hpp"
#include "tests/checkpoint/temp_folder.hpp"

using namespace hexad;
using namespace hexad::convert;
using Json = nlohmann::ordered_json;

namespace {

// The regexes of a pre-tokenizer, ByteLevel's and Digits' by their names.
std::vector<std::string> steps(const char* name) {
  const GgufPreTokenizer* pre = find_pre_tokenizer(name);
  REQUIRE(pre != nullptr);
  const Json json = pre_tokenizer_json(*pre);
  std::vector<std::string> result;
  for (const Json& step : json["type"] == "Sequence" ? json["pretokenizers"] : Json::array({json})) {
    if (step["type"] == "Split")
      result.push_back(step["pattern"]["Regex"]);
    else
      result.push_back(step["type"] == "ByteLevel" && step["use_regex"] == false ? "bytes" : step["type"]);
  }
  return result;
}

}  // namespace

TEST_CASE("a file without a pre-tokenizer is split as llama.cpp splits it, and a note says that this is a guess") {
  TempFolder folder;
  GgufFile file = tiny_gguf();
  CHECK(convert::convert(folder.write("n.gguf", file.bytes()), folder / "named").notes.empty());
  file.remove("tokenizer.ggml.pre");
  const auto source = folder.write("m.gguf", file.bytes());
  const ConvertResult result = convert::convert(source, folder / "hf");
  REQUIRE(result.notes.size() == 1);
  CHECK(result.notes[0] ==
        source.string() +
            ": metadata \"tokenizer.ggml.pre\" is missing, so that nothing says how text was split when the model was "
            "trained: \"default\" is taken, as llama.cpp does. If that is not the model's, its texts become the wrong "
            "tokens: take a newer GGUF file, or copy the tokenizer.json of the original model over the one that was "
            "made");
  const Json made = Json::parse(::read_file(folder / "hf/tokenizer.json"));
  CHECK(made["pre_tokenizer"] == pre_tokenizer_json(*find_pre_tokenizer("default")));
}

TEST_CASE("the names of llama.cpp") {
  CHECK(steps("gpt-2") == std::vector<std::string>{"ByteLevel"});
  CHECK(steps("smollm") == std::vector<std::string>{"Digits", "ByteLevel"});
  CHECK(steps("starcoder") == steps("smollm"));
  const std::vector<std::string> unnamed = steps("default");
  REQUIRE(unnamed.size() == 5);
  CHECK(unnamed[0] == R"([\p{P}\$\+<=>\^~\|]+)");
  CHECK(unnamed[3] == "[0-9][0-9][0-9]");
  CHECK(unnamed[4] == "bytes");
  CHECK(steps("deepseek-r1-qwen") == steps("qwen2"));
  CHECK(steps("llama3") == steps("smaug-bpe"));
  CHECK(steps("deepseek-v3").size() == 4);
  CHECK(find_pre_tokenizer("llama-bpe")->ignore_merges);
  CHECK_FALSE(find_pre_tokenizer("smaug-bpe")->ignore_merges);
  CHECK(find_pre_tokenizer("qwen2")->nfc);
  CHECK_FALSE(find_pre_tokenizer("deepseek-r1-qwen")->nfc);
  CHECK(find_pre_tokenizer("new") == nullptr);
}

TEST_CASE("every one of them makes a tokenizer") {
  TempFolder folder;
  for (const std::string& name : pre_tokenizer_names()) {
    CAPTURE(name);
    GgufFile file = tiny_gguf();
    file.set_text("tokenizer.ggml.pre", name);
    const auto gguf = tensorfile::Gguf::open(folder.write("m.gguf", file.bytes()));
    const auto tokenizer = text::Tokenizer::from_json(nlohmann::json::parse(gguf_tokenizer(gguf).dump()), "made");
    CHECK(tokenizer->encode("ab1ab", false) == std::vector<int32_t>{2, 3, 2});
  }
}

TEST_CASE("text begins with bos where llama.cpp adds it unasked") {
  TempFolder folder;
  const auto begins = [&](const char* pre, std::optional<bool> says) {
    GgufFile file = tiny_gguf();
    file.set_text("tokenizer.ggml.pre", pre);
    if (says) file.set_flag("tokenizer.ggml.add_bos_token", *says);
    const auto gguf = tensorfile::Gguf::open(folder.write("m.gguf", file.bytes()));
    CHECK(gguf_tokenizer_config(gguf)["add_bos_token"] ==
          (gguf_tokenizer(gguf)["post_processor"]["type"] == "Sequence"));
    return gguf_tokenizer_config(gguf)["add_bos_token"] == true;
  };
  CHECK(begins("llama-bpe", {}));
  CHECK_FALSE(begins("llama-bpe", false));
  CHECK_FALSE(begins("qwen2", {}));
  CHECK(begins("qwen2", true));
}
