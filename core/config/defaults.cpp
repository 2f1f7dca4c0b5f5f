#include "core/config/defaults.hpp"

#include "core/config/schema/schema.hpp"
#include "core/config/yaml_file.hpp"

namespace hexad::config {
namespace {

// The map that holds the last key of the path, made if it is absent; null if something else stands in its place.
Node* section_for(Node& root, const std::string& path, const Location& location) {
  Node* node = &root;
  for (size_t begin = 0, dot; (dot = path.find('.', begin)) != std::string::npos; begin = dot + 1) {
    const std::string name = path.substr(begin, dot - begin);
    Node* next = node->child(name);
    if (!next) next = &node->entries().emplace_back(name, Node(Node::Map{}, location)).second;
    if (!next->is_map()) return nullptr;
    node = next;
  }
  return node;
}

}  // namespace

bool trains(const Node& root) { return root.child("grpo") || (root.child("data") && !root.child("eval")); }

Node default_value(const std::string& default_yaml) {
  if (default_yaml.empty()) return Node();
  if (default_yaml.starts_with("${")) return Node(default_yaml, Location{"default", 0, 0});
  const Node parsed = read_yaml_text("value: " + default_yaml, "default");
  return Node(parsed.at("value").value(), Location{"default", 0, 0});
}

void fill_defaults(Node& root) {
  const bool training = trains(root), has_data = training || root.child("data");
  for (const Key& key : schema().keys()) {
    if (key.status != Status::effective || !key.filled || key.default_yaml.empty()) continue;
    if (!training && key.path.starts_with("grpo.")) continue;
    if (!has_data && key.path.starts_with("data.")) continue;
    const Node value = default_value(key.default_yaml);
    Node* section = section_for(root, key.path, value.location());
    const std::string name = key.path.substr(key.path.rfind('.') + 1);
    if (section && !section->child(name)) section->entries().emplace_back(name, value);
  }
}

}  // namespace hexad::config
