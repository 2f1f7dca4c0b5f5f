#include "app/convert/gguf_text.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "app/convert/gguf_architecture.hpp"
#include "app/convert/gguf_pre_tokenizer.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/text/template/chat_template.hpp"
#include "lib/text/tokenizer/folder_tokens.hpp"
#include "lib/text/tokenizer/tokenizer.hpp"
#include "lib/text/tokenizer/tokenizer_config.hpp"

namespace hexad::convert {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// The files of a tokenizer, read once.
struct TextFiles {
  fs::path folder;
  json document;  // tokenizer.json, with the tokens that files beside it add
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::map<std::string, std::string> special_tokens;  // by tokenizer_config.json's keys

  explicit TextFiles(const fs::path& from) : folder(from), tokenizer(text::Tokenizer::load(from)) {
    document = read_json<json>(folder / "tokenizer.json");
    text::add_folder_tokens(folder, document);
    special_tokens = text::TokenizerConfig::load(folder).special_tokens;
  }

  json part(const char* key) const { return document.value(key, json()); }
  template <typename... T>
  [[noreturn]] void refuse(fmt::format_string<T...> text, T&&... values) const {
    fail(ErrorKind::data, "{}: {}", (folder / "tokenizer.json").string(),
         fmt::format(text, std::forward<T>(values)...));
  }
};

bool is_empty(const json& text) { return text.is_null() || text == ""; }

// A part that may be a sequence of parts.
std::vector<json> parts_of(const json& part, const char* list) {
  if (part.is_null()) return {};
  if (part.value("type", json()) == "Sequence" && part.contains(list)) return part.at(list).get<std::vector<json>>();
  return {part};
}

bool has_part(const json& part, const char* list, const char* type) {
  return std::ranges::any_of(parts_of(part, list),
                             [&](const json& each) { return each.value("type", json()) == type; });
}

// "tokenizer.ggml.pre". Fails on anything but a byte-level BPE that llama.cpp has.
std::string pre_of(const TextFiles& files) {
  const json model = files.part("model"), normalizer = files.part("normalizer");
  const bool bpe = model.value("type", json()) == "BPE" && !model.value("byte_fallback", false) &&
                   is_empty(model.value("continuing_subword_prefix", json())) &&
                   is_empty(model.value("end_of_word_suffix", json()));
  if (!bpe || !has_part(files.part("decoder"), "decoders", "ByteLevel"))
    files.refuse("cannot be written as GGUF: it is no byte-level BPE (GPT-2, Llama 3, Qwen and their like)");
  const bool nfc = has_part(normalizer, "normalizers", "NFC");
  if (!normalizer.is_null() && (!nfc || parts_of(normalizer, "normalizers").size() != 1))
    files.refuse("cannot be written as GGUF: llama.cpp has no normalizer but NFC, this one is {}",
                 json_text(normalizer));
  const json ignore_merges = model.value("ignore_merges", json(false));
  const auto name = pre_tokenizer_name(files.part("pre_tokenizer"), ignore_merges == true, nfc);
  if (name) return *name;
  files.refuse("cannot be written as GGUF: llama.cpp has no name for its pre-tokenizer{}, which is {}",
               ignore_merges == true ? " with ignore_merges" : "", json_text(files.part("pre_tokenizer")));
}

// As llama.cpp's converter takes tokens for control tokens that their files do not call special.
bool looks_special(const std::string& token) {
  const auto between = [&](std::string_view begin, std::string_view end) {
    return token.size() >= begin.size() + end.size() && token.starts_with(begin) && token.ends_with(end);
  };
  return token == "<pad>" || token == "<mask>" || between("<|", "|>") || between("<｜", "｜>") ||
         between("<unused", ">");
}

void add_tokens(const TextFiles& files, int64_t rows, GgufText& result) {
  const int64_t size = files.tokenizer->vocab_size();
  if (size > rows) {
    files.refuse("has ids up to {}, the model has rows for {}: they do not belong together", size - 1, rows);
  }
  std::vector<std::string> tokens;
  std::vector<int32_t> types(static_cast<size_t>(rows), kNormal);
  for (int32_t id = 0; id < rows; ++id) {
    tokens.push_back(files.tokenizer->id_to_token(id));
    if (!tokens.back().empty()) continue;
    tokens.back() = padding_token(static_cast<size_t>(id));
    types[id] = kUnused;
  }
  for (const json& entry : files.part("added_tokens")) {
    const std::string content = entry.at("content");
    const std::optional<int32_t> id = files.tokenizer->token_to_id(content);
    if (!id) continue;
    const auto says = [&](const char* key) { return entry.value(key, json()) == true; };
    if (types[*id] != kControl) types[*id] = says("special") || looks_special(content) ? kControl : kUserDefined;
    for (const char* flag : {"single_word", "lstrip", "rstrip"})
      if (says(flag))
        result.notes.push_back(fmt::format("{}: token \"{}\" has {}, which llama.cpp does not know",
                                           (files.folder / "tokenizer.json").string(), content, flag));
  }
  result.entries.emplace_back("tokenizer.ggml.tokens", std::move(tokens));
  result.entries.emplace_back("tokenizer.ggml.token_type", std::move(types));
}

void add_merges(const TextFiles& files, GgufText& result) {
  std::vector<std::string> merges;
  for (const json& merge : files.part("model").value("merges", json::array())) {
    if (merge.is_array())
      merges.push_back(merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>());
    else if (!merge.get_ref<const std::string&>().starts_with("#version"))
      merges.push_back(merge.get<std::string>());
    if (!merges.empty() && std::ranges::count(merges.back(), ' ') != 1)
      files.refuse("cannot be written as GGUF: the merge {} has blanks", json_text(merge));
  }
  result.entries.emplace_back("tokenizer.ggml.merges", std::move(merges));
}

// The ids of a key that holds one or a list of them.
void add_ids(const nlohmann::ordered_json& config, const char* key, std::vector<int64_t>& ids) {
  if (!config.contains(key)) return;
  for (const auto& id : config.at(key).is_array() ? config.at(key) : nlohmann::ordered_json::array({config.at(key)}))
    if (id.is_number_integer() && std::ranges::find(ids, id.get<int64_t>()) == ids.end())
      ids.push_back(id.get<int64_t>());
}

// By role; the first id counts, and further ends of text as those of a turn and of a message.
void add_roles(const TextFiles& files, int64_t rows, const std::vector<nlohmann::ordered_json>& configs,
               GgufText& result) {
  for (const GgufRole& role : gguf_roles()) {
    std::vector<int64_t> ids;
    if (const auto token = files.special_tokens.find(role.token); token != files.special_tokens.end())
      if (const auto id = files.tokenizer->token_to_id(token->second)) ids.push_back(*id);
    for (const nlohmann::ordered_json& config : configs) add_ids(config, role.id, ids);
    std::erase_if(ids, [&](int64_t id) { return id < 0 || id >= rows; });
    if (ids.empty()) continue;
    result.entries.emplace_back(fmt::format("tokenizer.ggml.{}_token_id", role.name), static_cast<uint32_t>(ids[0]));
    if (role.name != std::string_view("eos")) continue;
    size_t next = 1;
    for (const char* key : kFurtherEnds)
      if (next < ids.size()) result.entries.emplace_back(key, static_cast<uint32_t>(ids[next++]));
    if (next < ids.size())
      result.notes.push_back(fmt::format("{}: of {} tokens that end a text GGUF has room for {}", files.folder.string(),
                                         ids.size(), next));
  }
}

// What a text is put between. Fails on more than the beginning and the end of text.
void add_surroundings(const TextFiles& files, GgufText& result) {
  bool bos = false, eos = false;
  const auto is_role = [&](const json& token, const char* role) {
    const auto found = files.special_tokens.find(role);
    return found != files.special_tokens.end() && token == found->second;
  };
  for (const json& step : parts_of(files.part("post_processor"), "processors")) {
    if (step.value("type", json()) == "ByteLevel") continue;
    bool known = step.value("type", json()) == "TemplateProcessing", before = true;
    for (const json& piece : known ? step.at("single") : json::array()) {
      const json token = piece.contains("SpecialToken") ? piece["SpecialToken"].value("id", json()) : json();
      if (piece.contains("Sequence"))
        before = false;
      else if (before && is_role(token, "bos_token") && !bos)
        bos = true;
      else if (!before && is_role(token, "eos_token") && !eos)
        eos = true;
      else
        known = false;
    }
    if (!known)
      files.refuse(
          "cannot be written as GGUF: its post_processor puts other tokens than bos_token before a text and "
          "eos_token behind it: {}",
          json_text(step));
  }
  result.entries.emplace_back("tokenizer.ggml.add_bos_token", bos);
  result.entries.emplace_back("tokenizer.ggml.add_eos_token", eos);
}

void add_templates(const TextFiles& files, GgufText& result) {
  const auto plain = text::ChatTemplate::for_model(files.folder);
  if (!plain) return;
  result.entries.emplace_back(kChatTemplate, plain->source());
  constexpr const char* with_tools = "tool_use";
  const auto tools = text::ChatTemplate::named(files.folder, with_tools);
  if (!tools) return;
  result.entries.emplace_back(kChatTemplates, std::vector<std::string>{with_tools});
  result.entries.emplace_back(fmt::format("{}.{}", kChatTemplate, with_tools), tools->source());
}

}  // namespace

GgufText gguf_text(const fs::path& folder, int64_t rows, const std::vector<nlohmann::ordered_json>& configs) {
  const TextFiles files(folder);
  GgufText result;
  result.entries.emplace_back("tokenizer.ggml.model", std::string("gpt2"));
  result.entries.emplace_back(kPre, pre_of(files));
  add_tokens(files, rows, result);
  add_merges(files, result);
  add_roles(files, rows, configs, result);
  add_surroundings(files, result);
  add_templates(files, result);
  return result;
}

}  // namespace hexad::convert
