#include "core/config/declaration/outline.hpp"

#include <algorithm>

#include "core/config/declaration/key_read.hpp"
#include "core/config/load/defaults.hpp"
#include "lib/base/json.hpp"
#include "lib/base/json_members.hpp"

namespace hexad::config {
namespace {

void add_owned(std::vector<std::string>& owned, std::string_view path) {
  const std::string_view name = path.substr(0, path.find('.'));
  if (name != "plugin_config" && std::ranges::find(owned, name) == owned.end()) owned.emplace_back(name);
}

SelectingKey selecting_key(const Key* key, const std::string& path, const yaml::Node& wanted) {
  return {path, wanted, key && same_value(default_value(key->default_yaml), wanted)};
}

// What is not cut so easily, the text of a keys.yaml above all, is read as a whole.
Outline outline_of(const Declaration& declaration) {
  Outline outline;
  outline.named = declaration.named;
  for (const Key& key : declaration.keys) add_owned(outline.owned, key.path);
  for (const auto& [name, fact] : declaration.facts) outline.facts.push_back(name);
  for (const auto& [path, wanted] : declaration.select)
    outline.select.push_back(selecting_key(declaration.find(path), path, wanted));
  return outline;
}

std::optional<std::string_view> member(const JsonMembers& members, std::string_view name) {
  const auto found = std::ranges::find(members, name, &JsonMembers::value_type::first);
  return found == members.end() ? std::nullopt : std::optional(found->second);
}

// The members of a part; none where it is absent. Nothing: it has to be parsed.
std::optional<JsonMembers> part(const JsonMembers& config, std::string_view name) {
  const std::optional<std::string_view> text = member(config, name);
  return text ? json_members(*text) : JsonMembers();
}

class Object {  // the text of a JSON object, member by member
 public:
  void add(std::string_view name, std::string_view value) {
    text_ += fmt::format("{}\"{}\":{}", text_.size() == 1 ? "" : ",", name, value);
  }
  std::string text() const { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

// The keys that `select` names, and the sections above them, which are declared before.
std::string selecting_keys(const JsonMembers& keys, std::string_view select) {
  const JsonMembers choice = json_members(select).value_or(JsonMembers());
  const JsonMembers when = json_members(member(choice, "when").value_or("")).value_or(JsonMembers());
  Object selecting;
  for (const auto& [path, value] : keys) {
    const auto is_above = [&path = path](const auto& each) {
      return each.first == path || each.first.starts_with(std::string(path) + ".");
    };
    if (std::ranges::any_of(when, is_above)) selecting.add(path, value);
  }
  return selecting.text();
}

std::optional<Declaration> read_cut(const plugin::Manifest& manifest, const Object& config, const std::string& where) {
  plugin::Manifest cut;
  cut.kind = manifest.kind, cut.name = manifest.name;
  cut.config = config.text();
  return read_declaration(cut, where);
}

}  // namespace

Outline read_outline(const plugin::Manifest& manifest, const std::string& where) {
  const std::optional<JsonMembers> config = json_members(manifest.config);
  const std::optional<JsonMembers> keys = config ? part(*config, "keys") : std::nullopt;
  const std::optional<JsonMembers> facts = config ? part(*config, "facts") : std::nullopt;
  if (!keys || !facts) {
    const std::optional<Declaration> whole = read_declaration(manifest, where);
    if (!whole) return {};
    Outline outline = outline_of(*whole);
    outline.selecting = *whole;
    return outline;
  }
  Outline outline;
  if (member(*config, "named") || member(*config, "select")) {
    Object choosing;
    if (const auto named = member(*config, "named")) choosing.add("named", *named);
    if (const auto select = member(*config, "select")) {
      choosing.add("keys", selecting_keys(*keys, *select));
      choosing.add("select", *select);
    }
    std::optional<Declaration> selecting = read_cut(manifest, choosing, where);
    outline = outline_of(*selecting);
    outline.selecting = std::move(*selecting);
    outline.owned.clear();
  }
  for (const auto& [path, text] : *keys) add_owned(outline.owned, path);
  for (const auto& [name, text] : *facts) outline.facts.emplace_back(name);
  return outline;
}

std::optional<Declaration> read_keys(const plugin::Manifest& manifest, const std::string& where) {
  const std::optional<JsonMembers> config = json_members(manifest.config);
  if (!config) return read_declaration(manifest, where);
  Object keys;
  for (const char* name : {"keys", "select"}) {
    if (const auto text = member(*config, name)) keys.add(name, *text);
  }
  return read_cut(manifest, keys, where);
}

}  // namespace hexad::config
