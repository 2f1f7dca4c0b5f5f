#include "app/convert/gguf.hpp"

#include <algorithm>

#include "app/convert/gguf_pre_tokenizer.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::convert {
namespace {

using Json = nlohmann::ordered_json;

// What llama.cpp takes where a file does not say.
constexpr const char* kPre = "tokenizer.ggml.pre";
constexpr const char* kGuess = "default";

const GgufPreTokenizer& pre_tokenizer_of(const tensorfile::Gguf& gguf) {
  const auto name = gguf.get_or<std::string>(kPre, kGuess);
  if (const GgufPreTokenizer* found = find_pre_tokenizer(name)) return *found;
  fail(ErrorKind::data, "{}: metadata \"{}\" is \"{}\", known are {}", gguf.path().string(), kPre, name,
       joined(pre_tokenizer_names()));
}

bool adds_bos(const tensorfile::Gguf& gguf) {
  return gguf.get_or<bool>("tokenizer.ggml.add_bos_token", pre_tokenizer_of(gguf).add_bos);
}

// Fails when the tokenizer is no byte-level BPE, or has more tokens than the model has embeddings.
std::vector<std::string> token_list(const tensorfile::Gguf& gguf) {
  const auto model = gguf.get<std::string>("tokenizer.ggml.model");
  if (model != "gpt2") {
    fail(ErrorKind::data, "{}: tokenizer model \"{}\" cannot be converted; known is gpt2 (byte-level BPE)",
         gguf.path().string(), model);
  }
  auto tokens = gguf.get<std::vector<std::string>>("tokenizer.ggml.tokens");
  const tensorfile::GgufTensor* embedding = gguf.find("token_embd.weight");
  if (embedding && embedding->shape.size() != 2)
    fail(ErrorKind::data, "{}: tensor \"token_embd.weight\" is no matrix", gguf.path().string());
  if (embedding && tokens.size() > static_cast<size_t>(embedding->shape[0])) {
    fail(ErrorKind::data, "{}: there are {} tokens, but tensor \"token_embd.weight\" has {} rows", gguf.path().string(),
         tokens.size(), embedding->shape[0]);
  }
  return tokens;
}

// The text of the token that a role ("bos", "eos", "padding", "unknown") names; null when it names none.
Json token_of(const tensorfile::Gguf& gguf, const std::vector<std::string>& tokens, const char* role) {
  const std::string key = fmt::format("tokenizer.ggml.{}_token_id", role);
  if (!gguf.metadata().contains(key)) return nullptr;
  const auto id = gguf.get<int64_t>(key);
  if (id < 0 || static_cast<size_t>(id) >= tokens.size()) {
    fail(ErrorKind::data, "{}: metadata \"{}\" is {}, but there are {} tokens", gguf.path().string(), key, id,
         tokens.size());
  }
  return tokens[id];
}

// Control tokens become special added tokens, user-defined ones plain added tokens.
Json added_tokens(const tensorfile::Gguf& gguf, const std::vector<std::string>& tokens) {
  constexpr int64_t control = 3, user_defined = 4;
  const auto types = gguf.get<std::vector<int64_t>>("tokenizer.ggml.token_type");
  if (types.size() != tokens.size()) {
    fail(ErrorKind::data, "{}: metadata \"tokenizer.ggml.token_type\" has {} elements, but there are {} tokens",
         gguf.path().string(), types.size(), tokens.size());
  }
  Json list = Json::array();
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (types[id] != control && types[id] != user_defined) continue;
    list.push_back({{"id", id},
                    {"content", tokens[id]},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", types[id] == control}});
  }
  return list;
}

Json vocabulary(const tensorfile::Gguf& gguf, const std::vector<std::string>& tokens) {
  // An ordered object's own insertion looks through all keys, which is quadratic: append to the vector that it is.
  std::map<std::string_view, size_t> seen;
  Json::object_t vocabulary;
  Json::object_t::Container& entries = vocabulary;
  entries.reserve(tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (const auto [first, is_new] = seen.emplace(tokens[id], id); !is_new) {
      fail(ErrorKind::data, "{}: tokens {} and {} are both \"{}\"", gguf.path().string(), first->second, id,
           tokens[id]);
    }
    entries.emplace_back(tokens[id], id);
  }
  return vocabulary;
}

// Adds the beginning-of-text token to every text, when the file asks for it.
Json post_processor(const tensorfile::Gguf& gguf, const Json& bos) {
  Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", false}, {"use_regex", true}};
  if (!adds_bos(gguf) || bos.is_null()) return bytes;
  const auto special = [&](int type) { return Json{{"SpecialToken", {{"id", bos}, {"type_id", type}}}}; };
  const auto text = [](const char* id, int type) { return Json{{"Sequence", {{"id", id}, {"type_id", type}}}}; };
  Json token = {{"id", bos}, {"tokens", {bos}}};
  token["ids"] = Json::array({gguf.get<int64_t>("tokenizer.ggml.bos_token_id")});
  const Json prepend = {{"type", "TemplateProcessing"},
                        {"single", Json::array({special(0), text("A", 0)})},
                        {"pair", Json::array({special(0), text("A", 0), special(1), text("B", 1)})},
                        {"special_tokens", {{bos.get<std::string>(), token}}}};
  return {{"type", "Sequence"}, {"processors", Json::array({bytes, prepend})}};
}

}  // namespace

Json gguf_tokenizer(const tensorfile::Gguf& gguf) {
  const std::vector<std::string> tokens = token_list(gguf);
  const GgufPreTokenizer& pre = pre_tokenizer_of(gguf);
  Json model = {{"type", "BPE"},
                {"dropout", nullptr},
                {"unk_token", nullptr},
                {"continuing_subword_prefix", nullptr},
                {"end_of_word_suffix", nullptr},
                {"fuse_unk", false},
                {"byte_fallback", false},
                {"ignore_merges", pre.ignore_merges}};
  model["vocab"] = vocabulary(gguf, tokens);
  model["merges"] = gguf.get<std::vector<std::string>>("tokenizer.ggml.merges");

  Json tokenizer = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  tokenizer["added_tokens"] = added_tokens(gguf, tokens);
  tokenizer["normalizer"] = pre.nfc ? Json{{"type", "NFC"}} : Json();
  tokenizer["pre_tokenizer"] = pre_tokenizer_json(pre);
  tokenizer["post_processor"] = post_processor(gguf, token_of(gguf, tokens, "bos"));
  tokenizer["decoder"] = {
      {"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  tokenizer["model"] = std::move(model);
  return tokenizer;
}

std::vector<std::string> gguf_notes(const tensorfile::Gguf& gguf) {
  if (gguf.metadata().contains(kPre)) return {};
  return {fmt::format(
      "{}: metadata \"{}\" is missing, so that nothing says how text was split when the model was trained: \"{}\" is "
      "taken, as llama.cpp does. If that is not the model's, its texts become the wrong tokens: take a newer GGUF "
      "file, "
      "or copy the tokenizer.json of the original model over the one that was made",
      gguf.path().string(), kPre, kGuess)};
}

Json gguf_tokenizer_config(const tensorfile::Gguf& gguf) {
  const std::vector<std::string> tokens = token_list(gguf);
  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  for (const auto& [role, name] : {std::pair("bos", "bos_token"), std::pair("eos", "eos_token"),
                                   std::pair("padding", "pad_token"), std::pair("unknown", "unk_token")}) {
    if (Json token = token_of(gguf, tokens, role); !token.is_null()) config[name] = std::move(token);
  }
  config["add_bos_token"] = adds_bos(gguf);
  config["clean_up_tokenization_spaces"] = false;
  config["model_max_length"] = gguf.get<int64_t>(gguf.get<std::string>("general.architecture") + ".context_length");
  if (gguf.metadata().contains("tokenizer.chat_template")) {
    config["chat_template"] = gguf.get<std::string>("tokenizer.chat_template");
  }
  return config;
}

Json gguf_generation_config(const tensorfile::Gguf& gguf) {
  Json config = Json::object();
  for (const auto& [role, name] :
       {std::pair("bos", "bos_token_id"), std::pair("eos", "eos_token_id"), std::pair("padding", "pad_token_id")}) {
    const std::string key = fmt::format("tokenizer.ggml.{}_token_id", role);
    if (gguf.metadata().contains(key)) config[name] = gguf.get<int64_t>(key);
  }
  // Further ends, of a turn and of a message, at which llama.cpp stops too.
  for (const char* key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    if (!gguf.metadata().contains(key)) continue;
    Json& ends = config["eos_token_id"];
    if (!ends.is_array()) ends = ends.is_null() ? Json::array() : Json::array({ends});
    const Json end = gguf.get<int64_t>(key);
    if (std::ranges::find(ends, end) == ends.end()) ends.push_back(end);
  }
  return config;
}

}  // namespace hexad::convert
