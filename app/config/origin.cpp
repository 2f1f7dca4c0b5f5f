#include "app/config/origin.hpp"

#include <algorithm>
#include <map>

#include "core/config/load/defaults.hpp"
#include "lib/yaml/secret.hpp"

namespace hexad::config {
namespace {

using Json = nlohmann::ordered_json;

bool is_leaf(const yaml::Node& node) {
  if (node.is_map()) return node.entries().empty();
  return !node.is_list() || node.items().empty();
}

std::string below(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }

// The key that a default belongs to; one that is inside of a default's list or map has none of its own.
const Key* key_of_default(const Schema& schema, const std::string& path) {
  std::string at = schema_path(path);
  for (;;) {
    if (const Key* key = schema.find(at)) return key;
    const size_t dot = at.rfind('.');
    if (dot == at.npos) return nullptr;
    at.resize(dot);
  }
}

// By section: the keys that are absent, and chosen when the run starts.
std::map<std::string, std::vector<const Key*>> automatic_keys(const Loaded& loaded) {
  std::map<std::string, std::vector<const Key*>> found;
  for (const Key& key : loaded.schema.keys()) {
    const bool absent = !key.automatic.empty() && !loaded.root.find(key.path);
    if (absent && key.filled && key.status == Status::effective)
      found[key.path.substr(0, key.path.rfind('.'))].push_back(&key);
  }
  return found;
}

std::string one_line_comment(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return text;
}

// Visits the leaves in order, with the origin of each.
class Leaves {
 public:
  explicit Leaves(const Loaded& loaded)
      : loaded_(loaded), root_(yaml::without_secrets(loaded.root)), automatic_(automatic_keys(loaded)) {}

  Json list() {
    list_below(root_, "", "");
    return std::move(list_);
  }

  std::string yaml(bool origins) {
    origins_ = origins;
    if (is_leaf(root_)) return root_.to_yaml();
    write(root_, "", 0, "");
    return std::move(yaml_);
  }

 private:
  // What was made on the way to a value has no place of its own.
  std::string origin(const yaml::Node& node, const std::string& path, const std::string& above) const {
    return node.location().file.empty() ? above : origin_text(loaded_, path, node.location());
  }
  const std::vector<const Key*>& automatic(const std::string& section) const {
    static const std::vector<const Key*> none;
    const auto found = automatic_.find(section);
    return found == automatic_.end() ? none : found->second;
  }

  void list_below(const yaml::Node& node, const std::string& path, const std::string& above) {
    const std::string here = origin(node, path, above);
    if (is_leaf(node) && !path.empty()) list_.push_back({{"key", path}, {"value", node.to_json()}, {"origin", here}});
    if (node.is_list()) {
      for (size_t i = 0; i < node.items().size(); ++i)
        list_below(node.items()[i], below(path, std::to_string(i)), here);
    }
    if (!node.is_map()) return;
    for (const auto& [name, value] : node.entries()) list_below(value, below(path, name), here);
    for (const Key* key : automatic(path))
      list_.push_back({{"key", key->path}, {"value", nullptr}, {"origin", "auto: " + key->automatic}});
  }

  void write(const yaml::Node& node, const std::string& path, int indent, const std::string& above) {
    if (node.is_list()) {
      for (size_t i = 0; i < node.items().size(); ++i) {
        yaml_ += std::string(indent, ' ') + "-";
        write_value(node.items()[i], below(path, std::to_string(i)), indent, above);
      }
      return;
    }
    for (const auto& [name, value] : node.entries()) {
      yaml_ += std::string(indent, ' ') + scalar(yaml::Node(yaml::Node::Value(name))) + ":";
      write_value(value, below(path, name), indent, above);
    }
    write_automatic(path, indent);
  }

  // What follows "key:" or "-", as Node::to_yaml() has it.
  void write_value(const yaml::Node& value, const std::string& path, int indent, const std::string& above) {
    const std::string here = origin(value, path, above);
    if (!is_leaf(value)) {
      yaml_ += '\n';
      write(value, path, indent + 2, here);
      return;
    }
    yaml_ += " " + scalar(value) + (origins_ ? "  # " + one_line_comment(here) : "") + "\n";
    if (value.is_map()) write_automatic(path, indent + 2);
  }

  void write_automatic(const std::string& section, int indent) {
    for (const Key* key : automatic(section)) {
      yaml_ += fmt::format("{}# {}: auto: {}\n", std::string(indent, ' '), key->path.substr(section.size() + 1),
                           one_line_comment(key->automatic));
    }
  }

  static std::string scalar(const yaml::Node& leaf) {
    std::string text = leaf.to_yaml();
    text.pop_back();
    return text;
  }

  const Loaded& loaded_;
  const yaml::Node root_;  // as it may be shown
  const std::map<std::string, std::vector<const Key*>> automatic_;
  bool origins_ = false;
  std::string yaml_;
  Json list_ = Json::array();
};

}  // namespace

std::string origin_text(const Loaded& loaded, const std::string& path, const yaml::Location& location) {
  if (location.file == kDefaultOrigin) {
    const Key* key = key_of_default(loaded.schema, path);
    if (!key || key->plugin.empty()) return kDefaultOrigin;
    return fmt::format("{} of {} ({})", kDefaultOrigin, key->plugin, key->plugin_file);
  }
  constexpr std::string_view kOverride = "override '";
  const std::string text = location.text();
  if (text.starts_with(kOverride) && text.ends_with('\''))
    return "override " + text.substr(kOverride.size(), text.size() - kOverride.size() - 1);
  return text;
}

std::string shown_yaml(const Loaded& loaded, bool origins) { return Leaves(loaded).yaml(origins); }

Json origins_json(const Loaded& loaded) { return Leaves(loaded).list(); }

}  // namespace hexad::config
