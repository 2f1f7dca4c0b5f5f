#include "core/config/typed/run_config_read.hpp"

namespace hexad::config {
namespace {

using Json = nlohmann::ordered_json;

// The keys of data.default, and of NeMo-RL 0.3's flat block, that a dataset takes over where it lacks them.
Json inherited_keys(const yaml::Node& root) {
  Json result = Json::object();
  const yaml::Node* shared = root.find("data.default");
  if (shared && shared->is_map()) result = shared->to_json();
  for (const char* key : {"prompt_file", "system_prompt_file", "split", "output_key", "input_key", "data_path",
                          "processor", "env_name", "repeat"}) {
    const std::string path = std::string("data.") + key;
    if (!result.contains(key) && root.has(path)) result[key] = root.at(path).to_json();
  }
  return result;
}

// Makes one dataset of a mapping whose kinds the schema has checked.
DatasetConfig dataset(const yaml::Node& root, const yaml::Node& node, const Json& inherited) {
  yaml::Node complete = node;
  if (!node.is_map()) complete.set_value(yaml::Node::Map{});
  DatasetConfig c;
  c.spec = complete.to_json();
  for (const auto& [key, value] : inherited.items()) {
    if (!c.spec.contains(key)) c.spec[key] = value;
  }
  const Algorithm algorithm = algorithm_of(root);
  Reader(root, name_of(algorithm)).read("seed", c.seed);
  if (algorithm == Algorithm::sft) c.processor = "sft_processor";
  if (has_pairs(algorithm)) c.processor = "preference_processor";
  const auto text = [&](const char* key, std::optional<std::string>& out) {
    if (c.spec.contains(key) && c.spec[key].is_string()) out = c.spec[key].get<std::string>();
  };
  std::optional<std::string> name, processor, env_name;
  text("dataset_name", name);
  text("processor", processor);
  text("env_name", env_name);
  c.dataset_name = name.value_or("");
  c.processor = processor.value_or(c.processor);
  c.env_name = env_name.value_or(c.env_name);
  text("data_path", c.data_path);
  text("input_key", c.input_key);
  text("output_key", c.output_key);
  text("subset", c.subset);
  text("split", c.split);
  text("prompt_file", c.prompt_file);
  text("system_prompt_file", c.system_prompt_file);
  if (c.spec.value("split_validation_size", Json()).is_number())
    c.split_validation_size = c.spec["split_validation_size"];
  if (c.spec.value("seed", Json()).is_number()) c.seed = c.spec["seed"];
  if (c.spec.value("repeat", Json()).is_number()) c.repeat = c.spec["repeat"];
  if (c.spec.value("max_samples", Json()).is_number()) c.max_samples = c.spec["max_samples"];
  return c;
}

std::vector<DatasetConfig> datasets(const yaml::Node& root, const std::string& path, const Json& inherited) {
  std::vector<DatasetConfig> result;
  const yaml::Node* node = root.find(path);
  if (!node || node->is_null()) return result;
  if (node->is_map()) return {dataset(root, *node, inherited)};
  for (const yaml::Node& item : node->items()) result.push_back(dataset(root, item, inherited));
  return result;
}

}  // namespace

DataConfig read_data(const yaml::Node& root) {
  const Reader r(root, "data");
  DataConfig c;
  // null: whatever fits the context.
  c.max_input_seq_length = root.optional_int("policy.max_total_sequence_length").value_or(c.max_input_seq_length);
  r.read("max_input_seq_length", c.max_input_seq_length);
  r.read("shuffle", c.shuffle);
  r.read("add_bos", c.add_bos);
  r.read("add_eos", c.add_eos);
  r.read("add_generation_prompt", c.add_generation_prompt);
  const Json inherited = inherited_keys(root);
  c.train = datasets(root, "data.train", inherited);
  c.validation = datasets(root, "data.validation", inherited);
  if (c.train.empty() && root.has("data.dataset_name")) {
    yaml::Node flat(yaml::Node::Map{}, root.at("data").location());
    flat.set("dataset_name", root.at("data.dataset_name"));
    c.train = {dataset(root, flat, inherited)};
  }
  return c;
}

}  // namespace hexad::config
