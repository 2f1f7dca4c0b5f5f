#include "core/config/declaration/moved_keys.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace hexad::config {
namespace {

// The map that holds the last name of the path, and that name; null if there is no such map.
std::pair<yaml::Node*, std::string> holder(yaml::Node& root, const std::string& path) {
  const size_t dot = path.rfind('.');
  yaml::Node* map = dot == path.npos ? &root : root.find(path.substr(0, dot));
  return {map && map->is_map() ? map : nullptr, path.substr(dot == path.npos ? 0 : dot + 1)};
}

std::optional<yaml::Node> taken(yaml::Node& root, const std::string& path) {
  const auto [map, name] = holder(root, path);
  if (!map || !map->child(name)) return std::nullopt;
  yaml::Node value = std::move(*map->child(name));
  std::erase_if(map->entries(), [&name = name](const auto& entry) { return entry.first == name; });
  return value;
}

// The open maps of chosen plugins that stand for a section.
std::vector<const Key*> standing(const Schema& schema) {
  std::vector<const Key*> result;
  for (const Key& key : schema.keys()) {
    if (!key.stands_for.empty()) result.push_back(&key);
  }
  return result;
}

}  // namespace

std::vector<Problem> move_renamed(yaml::Node& root, const Schema& schema) {
  std::vector<Problem> problems;
  for (const Key& key : schema.keys()) {
    for (const std::string& old : key.renamed_from) {
      std::optional<yaml::Node> value = taken(root, old);
      if (!value) continue;
      const yaml::Location place = value->location();
      if (root.find(key.path)) {
        problems.push_back({Problem::Severity::error, place, old,
                            fmt::format("is the older name of {}, which is there too: give the key once", key.path)});
        continue;
      }
      root.set(key.path, std::move(*value));
      problems.push_back({Problem::Severity::notice, place, old, fmt::format("is now {}", key.path)});
    }
  }
  return problems;
}

void move_beside(yaml::Node& root, const std::string& block, const Declaration& declaration) {
  for (const Key& key : declaration.keys) {
    if (!key.path.starts_with("plugin_config.") || root.find(block + "." + key.path)) continue;
    const std::string beside = block + key.path.substr(key.path.find('.'));
    if (std::optional<yaml::Node> value = taken(root, beside)) root.set(block + "." + key.path, std::move(*value));
  }
}

void move_standing(yaml::Node& root, const Schema& schema) {
  for (const Key* key : standing(schema)) {
    yaml::Node* section = root.find(key->stands_for);
    yaml::Node* map = root.find(key->path);
    if (!section || !section->is_map() || !map || !map->is_map()) continue;
    yaml::Node::Map lifted;
    std::erase_if(map->entries(), [&](auto& entry) {
      const std::string path = key->stands_for + "." + entry.first;
      if (!schema.find(path) || path == key->path || section->child(entry.first)) return false;
      lifted.push_back(std::move(entry));
      return true;
    });
    // The new entries may move the section's, the map among them.
    for (auto& entry : lifted) section->entries().push_back(std::move(entry));
  }
}

std::vector<Problem> check_standing(const yaml::Node& root, const Schema& schema) {
  std::vector<Problem> problems;
  for (const Key* key : standing(schema)) {
    const yaml::Node* map = root.find(key->path);
    if (!map || !map->is_map() || !key->filled) continue;  // not filled: of a plugin that the run does not use
    for (const auto& [name, value] : map->entries()) {
      const std::string own = key->stands_for + "." + name;
      const std::string message = schema.find(own) && own != key->path
                                      ? fmt::format("{} says otherwise: give the key once", own)
                                      : fmt::format("no key of {}; docs/config.md lists them", key->stands_for);
      problems.push_back({Problem::Severity::error, value.location(), key->path + "." + name, message});
    }
  }
  return problems;
}

}  // namespace hexad::config
