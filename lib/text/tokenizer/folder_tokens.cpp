#include "lib/text/tokenizer/folder_tokens.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "lib/base/json.hpp"

namespace hexad::text {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kRoles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                  "pad_token", "cls_token", "mask_token"};
constexpr const char* kExtras[] = {"additional_special_tokens", "extra_special_tokens",
                                   "model_specific_special_tokens"};
constexpr const char* kDecoder = "added_tokens_decoder";

json read_object(const fs::path& file) {
  if (!fs::exists(file)) return json::object();
  json document = read_json<json>(file);
  if (!document.is_object()) fail(ErrorKind::data, "{}: not a JSON object", file.string());
  return document;
}

// A token of its own form, {"content": ..., "lstrip": ...}. `special`: it is, whatever the entry says.
AddedToken token_of(const Component& entry, bool special) {
  AddedToken token;
  token.content = entry.text("content");
  token.single_word = entry.boolean_or("single_word", false);
  token.lstrip = entry.boolean_or("lstrip", false);
  token.rstrip = entry.boolean_or("rstrip", false);
  token.special = special || entry.boolean_or("special", false);
  token.normalized = entry.boolean_or("normalized", !token.special);
  return token;
}

AddedToken special_token(std::string content) {
  AddedToken token;
  token.content = std::move(content);
  token.special = true;
  return token;
}

AddedToken special_entry(const json& entry, const std::string& where) {
  return entry.is_string() ? special_token(entry.get<std::string>()) : token_of(Component(entry, where), true);
}

// The special token under a key: text, an object, or nothing.
std::optional<AddedToken> special_at(const Component& config, const char* key) {
  if (!config.has(key)) return std::nullopt;
  if (config.value().at(key).is_object()) return token_of(config.child(key), true);
  return special_token(config.text(key));
}

bool is_role(const std::string& key) {
  return std::ranges::any_of(kRoles, [&](const char* role) { return key == role; });
}

bool is_extra(const std::string& key) {
  return key.ends_with("_token") || std::ranges::any_of(kExtras, [&](const char* extra) { return key == extra; });
}

// An object under a key that ends so may be something else, such as settings of a processor.
bool is_token(const json& entry) { return entry.is_object() && entry.contains("content"); }

// Calls `each` with the name, "" in a list, and the token of every further special token: image_token and its like, and
// what stands in the lists.
template <typename Each>
void for_each_extra(const Component& config, Each each) {
  for (auto entry = config.value().begin(); entry != config.value().end(); ++entry)
    if (entry.key().ends_with("_token") && !is_role(entry.key()) && (entry->is_string() || is_token(*entry)))
      each(entry.key(), *special_at(config, entry.key().c_str()));
  for (const char* key : kExtras) {
    if (!config.has(key)) continue;
    const json& value = config.value().at(key);
    if (!value.is_array() && !value.is_object()) config.refuse("\"{}\" wants a list or an object of tokens", key);
    for (const auto& [name, entry] : value.items()) {
      const std::string label = value.is_object() ? name : "";
      each(label, special_entry(entry, fmt::format("{}.{}.{}", config.where(), key, name)));
    }
  }
}

bool has_flags_of(const json& entry, const AddedToken& token) {
  const auto flag = [&](const char* key, bool otherwise) { return entry.value(key, json(otherwise)) == true; };
  return flag("single_word", false) == token.single_word && flag("lstrip", false) == token.lstrip &&
         flag("rstrip", false) == token.rstrip && flag("normalized", true) == token.normalized &&
         flag("special", false) == token.special;
}

// The added_tokens of a tokenizer.json; what is malformed there its reader refuses.
struct OwnTokens {
  std::unordered_map<std::string, const json*> entries;  // by content
  std::set<int64_t> ids;

  explicit OwnTokens(const json& tokenizer) {
    const auto found = tokenizer.find("added_tokens");
    if (found == tokenizer.end() || !found->is_array()) return;
    for (const json& entry : *found) {
      if (!entry.is_object()) continue;
      const json content = entry.value("content", json()), id = entry.value("id", json());
      if (content.is_string()) entries[content.get<std::string>()] = &entry;
      if (id.is_number_integer()) ids.insert(id.get<int64_t>());
    }
  }
};

std::vector<FolderToken> decoder_tokens(const Component& config) {
  std::vector<FolderToken> result;
  const Component decoder = config.child(kDecoder);
  for (const auto& [name, entry] : decoder.value().items()) {
    int64_t id = -1;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), id);
    if (read.ec != std::errc() || read.ptr != name.data() + name.size() || id < 0)
      decoder.refuse("\"{}\" is no token id", name);
    result.push_back({token_of(decoder.child(name.c_str()), false), id, decoder.where()});
  }
  return result;
}

// added_tokens.json, {content: id}: a token is special if it has a role, and normalized otherwise.
std::vector<FolderToken> listed_tokens(const fs::path& folder, const std::set<std::string>& special,
                                       const OwnTokens& own) {
  std::vector<FolderToken> result;
  const fs::path file = folder / "added_tokens.json";
  const json list = read_object(file);
  for (const auto& [content, id] : list.items()) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0)
      fail(ErrorKind::data, "{}: the id of \"{}\" wants a whole number from 0", file.string(), content);
    if (own.ids.contains(id.get<int64_t>())) continue;
    AddedToken token;
    token.content = content;
    token.special = special.contains(content);
    token.normalized = !token.special;
    result.push_back({token, id.get<int64_t>(), file.string()});
  }
  return result;
}

// The strings of the model's own vocabulary.
std::unordered_set<std::string> vocabulary_of(const json& tokenizer) {
  std::unordered_set<std::string> result;
  const json::json_pointer place("/model/vocab");
  if (!tokenizer.contains(place)) return result;
  const json& vocab = tokenizer.at(place);
  if (vocab.is_object()) {
    for (auto entry = vocab.begin(); entry != vocab.end(); ++entry) result.insert(entry.key());
  } else if (vocab.is_array()) {
    for (const json& piece : vocab)
      if (piece.is_array() && !piece.empty() && piece[0].is_string()) result.insert(piece[0].get<std::string>());
  }
  return result;
}

}  // namespace

json read_folder_config(const fs::path& folder) {
  json config = read_object(folder / "tokenizer_config.json");
  if (config.contains(kDecoder) && !config[kDecoder].is_null()) return config;
  const fs::path file = folder / "special_tokens_map.json";
  const json map = read_object(file);
  const Component component(map, file.string());
  for (const char* role : kRoles) special_at(component, role);  // are looked at under the name of their own file
  for_each_extra(component, [](const std::string&, const AddedToken&) {});
  for (auto entry = map.begin(); entry != map.end(); ++entry)
    if (is_extra(entry.key())) config[entry.key()] = *entry;
  return config;
}

std::map<std::string, std::string> special_tokens(const json& config, const std::string& origin) {
  const Component component(config, origin);
  std::map<std::string, std::string> result;
  for_each_extra(component, [&](const std::string& name, const AddedToken& token) {
    if (!name.empty()) result[name] = token.content;
  });
  for (const char* role : kRoles)
    if (const auto token = special_at(component, role)) result[role] = token->content;
  return result;
}

std::vector<FolderToken> folder_tokens(const fs::path& folder, const json& tokenizer) {
  const json config = read_folder_config(folder);
  const std::string origin = (folder / "tokenizer_config.json").string();
  const Component component(config, origin);
  std::vector<FolderToken> special;
  for (const char* role : kRoles)
    if (const auto token = special_at(component, role)) special.push_back({*token, {}, origin + ": " + role});
  for_each_extra(component, [&](const std::string&, const AddedToken& token) {
    special.push_back({token, {}, origin + ": special tokens"});
  });
  std::set<std::string> names;
  for (const FolderToken& token : special) names.insert(token.token.content);

  const OwnTokens own(tokenizer);
  std::vector<FolderToken> result =
      component.has(kDecoder) ? decoder_tokens(component) : listed_tokens(folder, names, own);
  std::erase_if(result, [&](const FolderToken& token) {
    const auto same = own.entries.find(token.token.content);
    return same != own.entries.end() && has_flags_of(*same->second, token.token);
  });
  std::ranges::stable_sort(result, {}, [](const FolderToken& token) { return *token.id; });
  std::set<std::string> added;
  for (FolderToken& token : result) {
    token.token.special = token.token.special || names.contains(token.token.content);
    added.insert(token.token.content);
  }
  for (FolderToken& token : special)
    if (!own.entries.contains(token.token.content) && added.insert(token.token.content).second)
      result.push_back(std::move(token));
  return result;
}

std::vector<FolderToken> add_folder_tokens(const fs::path& folder, json& tokenizer) {
  std::vector<FolderToken> unknown;
  if (!tokenizer.is_object()) return unknown;
  json& list = tokenizer["added_tokens"];
  if (list.is_null()) list = json::array();
  if (!list.is_array()) return unknown;
  const std::vector<FolderToken> all = folder_tokens(folder, tokenizer);
  if (all.empty()) return unknown;
  const OwnTokens own(tokenizer);
  const std::unordered_set<std::string> vocabulary = vocabulary_of(tokenizer);
  std::ranges::copy_if(all, std::back_inserter(unknown), [&](const FolderToken& added) {
    return added.id && !own.entries.contains(added.token.content) && !vocabulary.contains(added.token.content);
  });
  for (const FolderToken& added : all) {
    const AddedToken& token = added.token;
    list.push_back({{"content", token.content},
                    {"single_word", token.single_word},
                    {"lstrip", token.lstrip},
                    {"rstrip", token.rstrip},
                    {"normalized", token.normalized},
                    {"special", token.special}});
  }
  return unknown;
}

}  // namespace hexad::text
