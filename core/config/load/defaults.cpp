#include "core/config/load/defaults.hpp"

#include <cmath>

#include "lib/base/json.hpp"
#include "core/config/algorithm.hpp"
#include "core/config/schema/schema.hpp"
#include "lib/yaml/file.hpp"
#include "lib/yaml/scalar.hpp"

namespace hexad::config {
namespace {

const yaml::Location kOrigin = {kDefaultOrigin, 0, 0};

// The map that holds the last key of the path, made if it is absent; null if something else stands in its place.
yaml::Node* section_for(yaml::Node& root, std::string_view path) {
  yaml::Node* node = &root;
  for (size_t begin = 0, dot; (dot = path.find('.', begin)) != path.npos; begin = dot + 1) {
    const std::string_view name = path.substr(begin, dot - begin);
    yaml::Node* next = node->child(name);
    if (!next) next = &node->entries().emplace_back(name, yaml::Node(yaml::Node::Map{}, kOrigin)).second;
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

bool is_word(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == '-'; });
}

// There are hundreds of defaults; those that need no YAML parser are nearly all.
yaml::Node::Value value_of(const std::string& default_yaml) {
  if (default_yaml.starts_with("${")) return default_yaml;
  if (default_yaml == "{}") return yaml::Node::Map{};
  if (default_yaml == "[]") return yaml::Node::List{};
  if (is_word(default_yaml)) return yaml::plain_scalar(default_yaml);
  return yaml::read_text("value: " + default_yaml, "default").at("value").value();
}

}  // namespace

bool trains(const yaml::Node& root) {
  return !algorithm_blocks(root).empty() || (root.child("data") && !root.child("eval"));
}

yaml::Node default_value(const std::string& default_yaml) {
  if (default_yaml.empty()) return yaml::Node();
  return yaml::Node(value_of(default_yaml), kOrigin);
}

namespace {

// A key below a map that says so has its default only where the map is written.
bool waits_for_section(const yaml::Node& root, const Schema& schema, const Key& key) {
  const std::string above = key.path.substr(0, key.path.rfind('.'));
  const Key* section = schema.find(above);
  return section && section->optional && !root.has(above);
}

std::string default_yaml_of(const yaml::Node& root, const Key& key, Algorithm algorithm,
                            const nlohmann::ordered_json& model) {
  for (const std::string& other : key.first_of) {
    if (root.has(other)) return "${" + other + "}";
  }
  if (!key.model_member.empty() && model.is_object() && model.contains(key.model_member))
    return json_text(model.at(key.model_member));
  return default_yaml_of(key, algorithm);
}

bool has_default(const Key& key) {
  return !key.default_yaml.empty() || !key.first_of.empty() || !key.model_member.empty();
}

}  // namespace

void fill_defaults(yaml::Node& root, const Schema& schema, const nlohmann::ordered_json& model) {
  const bool training = trains(root), has_data = training || root.child("data");
  const Algorithm algorithm = algorithm_of(root);
  for (const Key& key : schema.keys()) {
    if (key.status != Status::effective || !key.filled || !has_default(key)) continue;
    if (!training && key.path.starts_with("grpo.")) continue;
    if (!has_data && key.path.starts_with("data.")) continue;
    if (of_another_algorithm(key.path, algorithm) || waits_for_section(root, schema, key)) continue;
    const std::string yaml = default_yaml_of(root, key, algorithm, model);
    if (yaml.empty()) continue;
    yaml::Node* section = section_for(root, key.path);
    const std::string_view name = std::string_view(key.path).substr(key.path.rfind('.') + 1);
    if (section && !section->child(name)) section->entries().emplace_back(name, default_value(yaml));
  }
}

void round_integers(yaml::Node& root, const Schema& schema) {
  for (const Key& key : schema.keys()) {
    if (!(key.kinds & kInt) || (key.kinds & kFloat)) continue;
    yaml::Node* value = root.find(key.path);
    if (!value || !value->is_double()) continue;
    const double number = value->as_double();
    if (std::abs(number) < 9e15 && number == std::trunc(number)) value->set_value(static_cast<int64_t>(number));
  }
}

}  // namespace hexad::config
