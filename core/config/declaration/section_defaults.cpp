#include "core/config/declaration/section_defaults.hpp"

#include <algorithm>
#include <charconv>

#include "core/config/load/defaults.hpp"

namespace hexad::config {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kOfTheRun = "run.";

// The path within the block that "${x.y}" or "${.y}" means at `key_path`; nothing for any other text.
std::optional<std::string> referred_path(std::string_view key_path, std::string_view yaml) {
  if (!yaml.starts_with("${") || !yaml.ends_with('}')) return std::nullopt;
  std::string_view path = yaml.substr(2, yaml.size() - 3), map;
  if (path.find_first_of("${}:,[ ") != path.npos || path.starts_with(kOfTheRun)) return std::nullopt;
  if (path.starts_with('.')) map = key_path;
  for (; path.starts_with('.'); path.remove_prefix(1)) {
    if (map.empty()) return std::nullopt;  // beyond the block
    const size_t dot = map.rfind('.');
    map = dot == map.npos ? std::string_view() : map.substr(0, dot);
  }
  if (path.empty()) return std::nullopt;
  return map.empty() ? std::string(path) : std::string(map) + "." + std::string(path);
}

// Whether the maps above the key are there to be completed.
bool has_place(const Declaration& declaration, const std::string& path, const Json& section) {
  for (size_t dot = path.rfind('.'); dot != path.npos && dot > 0; dot = path.rfind('.', dot - 1)) {
    const std::string above = path.substr(0, dot);
    const Json* map = json_at(&section, above);
    if (map && !map->is_object()) return false;
    const Key* key = declaration.find(above);
    if (!map && key && key->optional) return false;
  }
  return true;
}

bool chooses(const Declaration& declaration, const Key& key) {
  return std::ranges::any_of(declaration.select, [&](const auto& wanted) { return wanted.first == key.path; });
}

}  // namespace

const Json* json_at(const Json* node, std::string_view path) {
  while (node && !path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    const std::string_view name = path.substr(0, dot);
    if (node->is_object()) {
      const auto found = node->find(std::string(name));
      node = found == node->end() ? nullptr : &*found;
    } else if (node->is_array()) {
      size_t index = 0;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
      const bool valid = error == std::errc() && end == name.data() + name.size() && index < node->size();
      node = valid ? &(*node)[index] : nullptr;
    } else {
      node = nullptr;
    }
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return node;
}

const Json* section_value(const Json& section, std::string_view path) {
  const Json* own = json_at(&section, "plugin_config");
  const Json* found = own ? json_at(own, path) : nullptr;
  return found && !found->is_null() ? found : json_at(&section, path);
}

bool set_json_at(Json& section, std::string_view path, Json value) {
  Json* node = &section;
  for (;;) {
    if (node->is_null()) *node = Json::object();
    if (!node->is_object()) return false;
    const size_t dot = path.find('.');
    node = &(*node)[std::string(path.substr(0, dot))];
    if (dot == path.npos) break;
    path.remove_prefix(dot + 1);
  }
  *node = std::move(value);
  return true;
}

std::optional<Json> declared_default(const Key& key, const Json& section) {
  if (!key.automatic.empty() || !key.model_member.empty()) return std::nullopt;
  for (const std::string& other : key.first_of) {
    const Json* value = section_value(section, other);
    if (value && !value->is_null()) return *value;
  }
  if (key.default_yaml.empty()) return std::nullopt;
  if (key.default_yaml.find("${") == key.default_yaml.npos) return default_value(key.default_yaml).to_json();
  const std::optional<std::string> other = referred_path(key.path, key.default_yaml);
  const Json* value = other ? section_value(section, *other) : nullptr;
  return value ? std::optional(*value) : std::nullopt;
}

Json filled_section(const Declaration& declaration, Json section) {
  if (!section.is_object()) return section;
  // A default may be that of a key further down, so until there is no more to add.
  for (bool added = true; added;) {
    added = false;
    for (const Key& key : declaration.keys) {
      const bool wanted = key.status == Status::effective && key.filled && !chooses(declaration, key);
      if (!wanted || json_at(&section, key.path) || !has_place(declaration, key.path, section)) continue;
      std::optional<Json> value = declared_default(key, section);
      if (value) added |= set_json_at(section, key.path, std::move(*value));
    }
  }
  return section;
}

}  // namespace hexad::config
