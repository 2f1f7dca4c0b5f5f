#include "app/convert/gguf.hpp"

#include <algorithm>

#include "app/convert/gguf_architecture.hpp"
#include "app/convert/gguf_pre_tokenizer.hpp"
#include "app/convert/gguf_text.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::convert {
namespace {

using Json = nlohmann::ordered_json;

// What llama.cpp takes where a file does not say.
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

std::vector<int64_t> token_types(const tensorfile::Gguf& gguf, const std::vector<std::string>& tokens) {
  auto types = gguf.get<std::vector<int64_t>>("tokenizer.ggml.token_type");
  if (types.size() == tokens.size()) return types;
  fail(ErrorKind::data, "{}: metadata \"tokenizer.ggml.token_type\" has {} elements, but there are {} tokens",
       gguf.path().string(), types.size(), tokens.size());
}

// Control tokens become special added tokens, user-defined ones plain added tokens.
Json added_tokens(const tensorfile::Gguf& gguf, const std::vector<std::string>& tokens) {
  const std::vector<int64_t> types = token_types(gguf, tokens);
  Json list = Json::array();
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (types[id] != kControl && types[id] != kUserDefined) continue;
    list.push_back({{"id", id},
                    {"content", tokens[id]},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", types[id] == kControl}});
  }
  return list;
}

Json vocabulary(const tensorfile::Gguf& gguf, const std::vector<std::string>& tokens) {
  const std::vector<int64_t> types = token_types(gguf, tokens);
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
    if (types[id] == kUnused && tokens[id] == padding_token(id)) continue;  // of a row of the model without a token
    entries.emplace_back(tokens[id], id);
  }
  return vocabulary;
}

// Puts the beginning and the end of text around every text, as the file asks for it.
Json post_processor(const tensorfile::Gguf& gguf, const std::vector<std::string>& tokens) {
  Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", false}, {"use_regex", true}};
  Json single = Json::array(), pair = Json::array(), specials = Json::object();
  const auto add = [&](const char* role, bool asked, int type) {
    const Json token = asked ? token_of(gguf, tokens, role) : Json();
    if (token.is_null()) return;
    const Json id = gguf.get<int64_t>(fmt::format("tokenizer.ggml.{}_token_id", role));
    if (type == 0) single.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
    pair.push_back({{"SpecialToken", {{"id", token}, {"type_id", type}}}});
    specials[token.get<std::string>()] = {{"id", token}, {"ids", Json::array({id})}, {"tokens", Json::array({token})}};
  };
  const bool bos = adds_bos(gguf), eos = gguf.get_or<bool>("tokenizer.ggml.add_eos_token", false);
  for (const auto& [name, type] : {std::pair("A", 0), std::pair("B", 1)}) {
    add("bos", bos, type);
    const Json sequence = {{"Sequence", {{"id", name}, {"type_id", type}}}};
    if (type == 0) single.push_back(sequence);
    pair.push_back(sequence);
    add("eos", eos, type);
  }
  if (specials.empty()) return bytes;
  const Json around = {
      {"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", specials}};
  return {{"type", "Sequence"}, {"processors", Json::array({bytes, around})}};
}

// Null where the file has none; a list of named ones where it has more than one.
Json chat_template(const tensorfile::Gguf& gguf) {
  Json list = Json::array();
  const auto add = [&](const std::string& name, const std::string& key) {
    if (gguf.metadata().contains(key)) list.push_back({{"name", name}, {"template", gguf.get<std::string>(key)}});
  };
  add("default", kChatTemplate);
  if (gguf.metadata().contains(kChatTemplates))
    for (const std::string& name : gguf.get<std::vector<std::string>>(kChatTemplates))
      add(name, fmt::format("{}.{}", kChatTemplate, name));
  if (list.empty()) return nullptr;
  return list.size() == 1 && list[0]["name"] == "default" ? list[0]["template"] : list;
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
  tokenizer["post_processor"] = post_processor(gguf, tokens);
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
  for (const GgufRole& role : gguf_roles())
    if (Json token = token_of(gguf, tokens, role.name); !token.is_null()) config[role.token] = std::move(token);
  config["add_bos_token"] = adds_bos(gguf);
  if (gguf.get_or<bool>("tokenizer.ggml.add_eos_token", false)) config["add_eos_token"] = true;
  config["clean_up_tokenization_spaces"] = false;
  config["model_max_length"] = gguf.get<int64_t>(gguf.get<std::string>("general.architecture") + ".context_length");
  if (Json chat = chat_template(gguf); !chat.is_null()) config["chat_template"] = std::move(chat);
  return config;
}

Json gguf_generation_config(const tensorfile::Gguf& gguf) {
  Json config = Json::object();
  for (const GgufRole& role : gguf_roles()) {
    const std::string key = fmt::format("tokenizer.ggml.{}_token_id", role.name);
    if (role.name != std::string_view("unknown") && gguf.metadata().contains(key))
      config[role.id] = gguf.get<int64_t>(key);
  }
  for (const GgufSampling& how : gguf_sampling()) {
    if (!gguf.metadata().contains(how.name)) continue;
    config[how.config] = how.real ? Json(gguf.get<double>(how.name)) : Json(gguf.get<int64_t>(how.name));
  }
  // Further ends, of a turn and of a message, at which llama.cpp stops too.
  for (const char* key : kFurtherEnds) {
    if (!gguf.metadata().contains(key)) continue;
    Json& ends = config["eos_token_id"];
    if (!ends.is_array()) ends = ends.is_null() ? Json::array() : Json::array({ends});
    const Json end = gguf.get<int64_t>(key);
    if (std::ranges::find(ends, end) == ends.end()) ends.push_back(end);
  }
  return config;
}

}  // namespace hexad::convert
