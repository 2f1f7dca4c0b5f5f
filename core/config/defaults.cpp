#include "core/config/defaults.hpp"

#include "core/config/algorithm.hpp"
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

// Defaults that are another algorithm's than grpo's own.
std::string default_yaml_of(const Key& key, Algorithm algorithm) {
  if (algorithm == Algorithm::grpo) return key.default_yaml;
  if (key.path == "loss_fn.plugin") return default_loss(algorithm);
  if (key.path == "checkpointing.checkpoint_dir") return std::string("results/") + name_of(algorithm);
  if (key.path == "checkpointing.higher_is_better") return "false";
  if (key.path == "checkpointing.metric_name")
    return has_pairs(algorithm) ? "val:validation-default_loss" : "val:val_loss";
  return key.default_yaml;
}

// True for a key of an algorithm's block that is not the configuration's.
bool of_another_algorithm(const std::string& path, Algorithm algorithm) {
  for (const Algorithm other : {Algorithm::grpo, Algorithm::sft, Algorithm::dpo, Algorithm::rm}) {
    if (other != algorithm && path.starts_with(std::string(name_of(other)) + ".")) return true;
  }
  return false;
}

}  // namespace

bool trains(const Node& root) { return !algorithm_blocks(root).empty() || (root.child("data") && !root.child("eval")); }

Node default_value(const std::string& default_yaml) {
  if (default_yaml.empty()) return Node();
  if (default_yaml.starts_with("${")) return Node(default_yaml, Location{"default", 0, 0});
  const Node parsed = read_yaml_text("value: " + default_yaml, "default");
  return Node(parsed.at("value").value(), Location{"default", 0, 0});
}

void fill_defaults(Node& root) {
  const bool training = trains(root), has_data = training || root.child("data");
  const Algorithm algorithm = algorithm_of(root);
  for (const Key& key : schema().keys()) {
    if (key.status != Status::effective || !key.filled || key.default_yaml.empty()) continue;
    if (!training && key.path.starts_with("grpo.")) continue;
    if (!has_data && key.path.starts_with("data.")) continue;
    if (of_another_algorithm(key.path, algorithm)) continue;
    const Node value = default_value(default_yaml_of(key, algorithm));
    Node* section = section_for(root, key.path, value.location());
    const std::string name = key.path.substr(key.path.rfind('.') + 1);
    if (section && !section->child(name)) section->entries().emplace_back(name, value);
  }
}

}  // namespace hexad::config
