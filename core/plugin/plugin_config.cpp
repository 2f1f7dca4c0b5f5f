#include "core/plugin/plugin_config.hpp"

#include <charconv>

#include "core/base/json.hpp"
#include "core/base/suggest.hpp"

namespace hexad::plugin {
namespace {

using Json = PluginConfig::Json;

// The value at a dotted path (perhaps a JSON null), or no value; a number selects a list element.
const Json* value_at(const Json* node, std::string_view path) {
  while (node && !path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    const std::string_view key = path.substr(0, dot);
    if (node->is_object()) {
      const auto found = node->find(std::string(key));
      node = found == node->end() ? nullptr : &*found;
    } else if (node->is_array()) {
      size_t index = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
      const bool valid = error == std::errc() && end == key.data() + key.size() && index < node->size();
      node = valid ? &(*node)[index] : nullptr;
    } else {
      node = nullptr;
    }
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return node;
}

// JSON null counts as absent.
const Json* not_null(const Json* value) { return value && !value->is_null() ? value : nullptr; }

// True if `path` is `prefix` or lies below it; everything lies below "".
bool below(std::string_view path, std::string_view prefix) {
  if (prefix.empty() || path == prefix) return true;
  return path.size() > prefix.size() && path.starts_with(prefix) && path[prefix.size()] == '.';
}

void collect_leaves(const Json& node, const std::string& path, std::vector<std::string>& leaves) {
  if (node.is_object() && !node.empty()) {
    for (const auto& [key, value] : node.items()) collect_leaves(value, path.empty() ? key : path + "." + key, leaves);
  } else if (node.is_array() && !node.empty()) {
    for (size_t i = 0; i < node.size(); ++i) collect_leaves(node[i], fmt::format("{}.{}", path, i), leaves);
  } else if (!path.empty()) {
    leaves.push_back(path);
  }
}

}  // namespace

PluginConfig::PluginConfig(std::string section_path, Json section, Locate locate)
    : section_path_(std::move(section_path)),
      section_(std::move(section)),
      locate_(std::move(locate)),
      state_(std::make_unique<State>()) {}

const Json* PluginConfig::find(std::string_view path) const {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->asked.emplace(path);
  }
  const Json* own = not_null(value_at(&section_, "plugin_config"));
  const Json* found = own ? not_null(value_at(own, path)) : nullptr;
  return found ? found : not_null(value_at(&section_, path));
}

const char* PluginConfig::json_text(std::string_view path) const {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->whole.emplace(path);
  }
  // "" is the whole section, not the whole of plugin_config.
  const Json* own = path.empty() ? nullptr : not_null(value_at(&section_, "plugin_config"));
  const Json* found = own ? value_at(own, path) : nullptr;
  if (!found) found = value_at(&section_, path);
  return found ? keep(hexad::json_text(*found)) : nullptr;
}

const char* PluginConfig::keep(std::string text) const {
  const std::scoped_lock lock(state_->mutex);
  return state_->texts.emplace_back(std::move(text)).c_str();
}

std::string PluginConfig::place(std::string_view path, bool in_plugin_config) const {
  std::string full = section_path_;
  if (in_plugin_config) full += full.empty() ? "plugin_config" : ".plugin_config";
  if (!path.empty()) full += full.empty() ? std::string(path) : "." + std::string(path);
  const std::string location = locate_ ? locate_(full) : "";
  return location.empty() ? full : location + ": " + full;
}

std::string PluginConfig::type_error(std::string_view path, std::string_view wanted, const Json& got) const {
  const Json* own = not_null(value_at(&section_, "plugin_config"));
  const std::string text = hexad::json_text(got);
  return fmt::format("{} must be {}, got {} {}", place(path, own && value_at(own, path) == &got), wanted,
                     got.type_name(), text);
}

std::vector<std::string> PluginConfig::unread_keys(const std::string& plugin_name) const {
  const Json* own = not_null(value_at(&section_, "plugin_config"));
  std::vector<std::string> leaves, messages;
  if (own) collect_leaves(*own, "", leaves);
  const std::scoped_lock lock(state_->mutex);
  const std::vector<std::string> known(state_->asked.begin(), state_->asked.end());
  for (const std::string& leaf : leaves) {
    bool read = false;
    for (const std::string& path : state_->asked) read |= path == leaf;
    for (const std::string& path : state_->whole) read |= below(leaf, path);
    if (read) continue;
    const auto guess = nearest(leaf, known);
    messages.push_back(fmt::format("{} is not used by '{}'.{}", place(leaf, true), plugin_name,
                                   guess ? fmt::format(" Did you mean {}?", *guess) : ""));
  }
  return messages;
}

}  // namespace hexad::plugin
