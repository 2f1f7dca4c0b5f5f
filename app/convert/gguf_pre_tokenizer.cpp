#include "app/convert/gguf_pre_tokenizer.hpp"

#include <algorithm>

#include "lib/base/json.hpp"

namespace hexad::convert {
namespace {

using Json = nlohmann::ordered_json;

#define HEXAD_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define HEXAD_WORDS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|)"
#define HEXAD_REST R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define HEXAD_HEAD R"([^\r\n\p{L}\p{N}]?)"
#define HEXAD_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define HEXAD_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define HEXAD_SLASH R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"

constexpr const char* kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// The published patterns of Llama 3 and Qwen 2 differ only in how many digits stay together.
constexpr const char* kLlama3 = HEXAD_CONTRACTIONS HEXAD_WORDS R"(\p{N}{1,3})" HEXAD_REST;
constexpr const char* kQwen2 = HEXAD_CONTRACTIONS HEXAD_WORDS R"(\p{N})" HEXAD_REST;
constexpr const char* kTekken =
    HEXAD_HEAD HEXAD_UPPER "*" HEXAD_LOWER "+|" HEXAD_HEAD HEXAD_UPPER "+" HEXAD_LOWER R"(*|\p{N})" HEXAD_SLASH;
constexpr const char* kGpt4o =
    HEXAD_HEAD HEXAD_UPPER "*" HEXAD_LOWER "+" HEXAD_CONTRACTIONS "?|" HEXAD_HEAD HEXAD_UPPER "+" HEXAD_LOWER
                           "*" HEXAD_CONTRACTIONS R"(?|\p{N}{1,3})" HEXAD_SLASH;
constexpr const char* kBloom = " ?[^(\\s|.,!?…。，、।۔،)]+";
constexpr const char* kDigit = R"(\p{N})";
constexpr const char* kThreeDigits = "[0-9][0-9][0-9]";
constexpr const char* kHan = "[一-龥ࠀ-一가-퟿]+";
constexpr const char* kDeepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

const std::vector<GgufPreTokenizer>& all() {
  static const std::vector<GgufPreTokenizer> table = {
      {{"default"}, {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", kThreeDigits}},
      {{"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "jina-v1-en", "jina-v2-code", "roberta-bpe",
        "gigachat", "a.x-4.0", "mellum", "modern-bert", "exaone4", "mpt", "olmo", "jais"},
       {kGpt2}},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}, {kDigit, kGpt2}},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
       {kLlama3},
       true,
       true},
      {{"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, {kLlama3}},
      {{"qwen2"}, {kQwen2}, false, false, true},
      {{"deepseek-r1-qwen", "megrez", "kormo", "f2llmv2", "stablelm2"}, {kQwen2}},
      {{"deepseek-coder"}, {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kHan, kDigit}},
      {{"deepseek-v3"}, {R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+", kDeepseek3}},
      {{"falcon"}, {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2, kThreeDigits}},
      {{"bloom", "poro-chat", "gpt3-finnish"}, {kBloom}},
      {{"viking"}, {kBloom, kDigit}},
      {{"tekken"}, {kTekken}, true, true},
      {{"gpt-4o", "llama4", "kanana2", "talkie"}, {kGpt4o}},
  };
  return table;
}

Json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

// What a pre-tokenizer does, a text each step: two that do the same have the same texts, whatever fields they have that
// change nothing. A step that stands in no table of llama.cpp's is its JSON.
void add_steps(const nlohmann::json& step, std::vector<std::string>& steps) {
  if (!step.is_object()) return;
  const auto type = step.value("type", nlohmann::json());
  if (type == "Sequence") {
    for (const nlohmann::json& each : step.value("pretokenizers", nlohmann::json::array())) add_steps(each, steps);
    return;
  }
  const auto says = [&](const char* key, bool otherwise) { return step.value(key, nlohmann::json(otherwise)) == true; };
  const nlohmann::json pattern = step.value("pattern", nlohmann::json());
  if (type == "Digits" && says("individual_digits", false)) {
    steps.push_back(kDigit);
  } else if (type == "ByteLevel" && !says("add_prefix_space", true)) {
    if (says("use_regex", true)) steps.push_back(kGpt2);
    steps.push_back("bytes");
  } else if (type == "Split" && pattern.is_object() && pattern.contains("Regex") && pattern["Regex"].is_string() &&
             step.value("behavior", nlohmann::json()) == "Isolated" && !says("invert", false)) {
    steps.push_back(pattern["Regex"].get<std::string>());
  } else {
    steps.push_back(json_text(step));
  }
}

}  // namespace

std::optional<std::string> pre_tokenizer_name(const nlohmann::json& pre_tokenizer, bool ignore_merges, bool nfc) {
  std::vector<std::string> wanted;
  add_steps(pre_tokenizer, wanted);
  for (const GgufPreTokenizer& pre : all()) {
    std::vector<std::string> steps(pre.splits.begin(), pre.splits.end());
    steps.push_back("bytes");
    if (steps == wanted && pre.ignore_merges == ignore_merges && pre.nfc == nfc) return pre.names.front();
  }
  return std::nullopt;
}

const GgufPreTokenizer* find_pre_tokenizer(const std::string& name) {
  for (const GgufPreTokenizer& pre : all())
    if (std::ranges::any_of(pre.names, [&](const char* known) { return name == known; })) return &pre;
  return nullptr;
}

std::vector<std::string> pre_tokenizer_names() {
  std::vector<std::string> names;
  for (const GgufPreTokenizer& pre : all()) names.insert(names.end(), pre.names.begin(), pre.names.end());
  return names;
}

Json pre_tokenizer_json(const GgufPreTokenizer& pre) {
  // The byte-level step brings GPT-2's regex itself, and digits have a step of their own: the published forms.
  const bool gpt2 = pre.splits.back() == kGpt2;
  if (gpt2 && pre.splits.size() == 1) return byte_level(true);
  Json steps = Json::array();
  for (const char* split : pre.splits) {
    if (split == kDigit && gpt2) {
      steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
    } else if (!(split == kGpt2 && gpt2)) {
      steps.push_back(
          {{"type", "Split"}, {"pattern", {{"Regex", split}}}, {"behavior", "Isolated"}, {"invert", false}});
    }
  }
  steps.push_back(byte_level(gpt2));
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

}  // namespace hexad::convert
