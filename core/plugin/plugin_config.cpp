#include "core/plugin/plugin_config.hpp"

#include <algorithm>

#include "core/config/declaration/section_defaults.hpp"
#include "core/config/load/defaults.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

namespace hexad::plugin {
namespace {

using Json = PluginConfig::Json;

constexpr size_t kDefaultsOfKey = 8;  // that are kept

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

void PluginConfig::fill(const config::Declaration& declaration) {
  const auto own_map = [](const Json& section) {
    const Json* own = config::json_at(&section, "plugin_config");
    return own ? *own : Json();
  };
  // Also those that were filled before this object was made.
  Json bare = section_;
  if (bare.is_object()) bare.erase("plugin_config");
  const Json before = own_map(section_), defaults = own_map(config::filled_section(declaration, std::move(bare)));
  section_ = config::filled_section(declaration, std::move(section_));
  const Json own = own_map(section_);
  std::vector<std::string> leaves;
  collect_leaves(own, "", leaves);
  for (std::string& leaf : leaves) {
    const Json* usual = config::json_at(&defaults, leaf);
    const bool is_usual = usual && *usual == *config::json_at(&own, leaf);
    if (is_usual || !config::json_at(&before, leaf)) filled_.insert(std::move(leaf));
  }
}

void PluginConfig::note_read(std::string_view path, ReadAs as, Json otherwise) const {
  const std::scoped_lock lock(state_->mutex);
  std::vector<ConfigRead>& known = state_->reads[std::string(path)];
  const auto same = [&](const ConfigRead& read) { return read.as == as && read.otherwise == otherwise; };
  if (known.size() < kDefaultsOfKey && std::ranges::none_of(known, same))
    known.push_back({std::string(path), as, std::move(otherwise)});
}

std::vector<ConfigRead> PluginConfig::reads() const {
  const std::scoped_lock lock(state_->mutex);
  std::vector<ConfigRead> all;
  for (const auto& [path, reads] : state_->reads) all.insert(all.end(), reads.begin(), reads.end());
  return all;
}

const Json* PluginConfig::find(std::string_view path) const {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->asked.emplace(path);
  }
  return not_null(config::section_value(section_, path));
}

const char* PluginConfig::json_text(std::string_view path) const {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->whole.emplace(path);
  }
  if (records_) note_read(path, ReadAs::json, nullptr);
  // "" is the whole section, not the whole of plugin_config.
  const Json* own = path.empty() ? nullptr : not_null(config::json_at(&section_, "plugin_config"));
  const Json* found = own ? config::json_at(own, path) : nullptr;
  if (!found) found = config::json_at(&section_, path);
  return found ? keep(hexad::json_text(with_named_infinities(*found))) : nullptr;
}

const char* PluginConfig::keep(std::string text) const {
  const std::scoped_lock lock(state_->mutex);
  return state_->texts.emplace_back(std::move(text)).c_str();
}

std::string PluginConfig::full_path(std::string_view path, bool in_plugin_config) const {
  std::string full = section_path_;
  if (in_plugin_config) full += full.empty() ? "plugin_config" : ".plugin_config";
  if (!path.empty()) full += full.empty() ? std::string(path) : "." + std::string(path);
  return full;
}

std::string PluginConfig::place(std::string_view path, bool in_plugin_config) const {
  const std::string full = full_path(path, in_plugin_config);
  const std::string location = locate_ ? locate_(full) : "";
  return location.empty() ? full : location + ": " + full;
}

std::string PluginConfig::type_error(std::string_view path, std::string_view wanted, const Json& got) const {
  const Json* own = not_null(config::json_at(&section_, "plugin_config"));
  const std::string text = hexad::json_text(got);
  return fmt::format("{} must be {}, got {} {}", place(path, own && config::json_at(own, path) == &got), wanted,
                     got.type_name(), text);
}

// A default of the configuration has no place in a file, nor has a map or list that is one as a whole.
bool PluginConfig::is_default(const std::string& leaf) const {
  if (filled_.contains(leaf)) return true;
  if (!locate_) return false;
  for (std::string path = leaf;; path.resize(path.rfind('.'))) {
    if (locate_(full_path(path, true)) == config::kDefaultOrigin) return true;
    if (path.find('.') == path.npos) return false;
  }
}

std::vector<std::string> PluginConfig::unread_keys(const std::string& plugin_name) const {
  const Json* own = not_null(config::json_at(&section_, "plugin_config"));
  std::vector<std::string> leaves, messages;
  if (own) collect_leaves(*own, "", leaves);
  const std::scoped_lock lock(state_->mutex);
  const std::vector<std::string> known(state_->asked.begin(), state_->asked.end());
  for (const std::string& leaf : leaves) {
    bool read = is_default(leaf);
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
