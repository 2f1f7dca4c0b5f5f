#include "compat/nemo_rl/eval_form.hpp"

#include "lib/yaml/interpolation.hpp"

namespace hexad::compat {
namespace {

// Takes a key out of a map; null if it has none.
yaml::Node take(yaml::Node& map, std::string_view key) {
  yaml::Node::Map& entries = map.entries();
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    if (entry->first != key) continue;
    yaml::Node value = std::move(entry->second);
    entries.erase(entry);
    return value;
  }
  return {};
}

// Names of NeMo-RL 0.3.
void rename_old_keys(yaml::Node& file) {
  const auto rename = [&](const char* section, const char* old, const std::string& path) {
    yaml::Node* map = file.child(section);
    if (!map || !map->is_map()) return;
    const yaml::Node value = take(*map, old);
    if (!value.is_null() && !file.has(path)) file.set(path, value);
  };
  rename("eval", "pass_k_value", "eval.k_value");
  rename("data", "problem_key", "data.input_key");
  rename("data", "solution_key", "data.output_key");
  rename("data", "data_paths", "data.data_path");
  yaml::Node* data = file.child("data");
  if (!data || !data->is_map()) return;
  take(*data, "file_format");  // the file's ending says it
  if (const yaml::Node* name = data->child("dataset_name"); name && name->is_string() && name->as_string() == "local")
    file.set("data.dataset_name", yaml::Node(std::string("ResponseDataset"), name->location()));
}

void put(yaml::Node& root, const std::string& path, const yaml::Node* value) {
  if (value && !value->is_null() && !root.has(path)) root.set(path, *value);
}

}  // namespace

bool is_eval_form(const yaml::Node& root) {
  const yaml::Node* generation = root.child("generation");
  return root.child("eval") && generation && generation->is_map();
}

bool is_eval_form_key(const std::string& path) {
  return path == "generation" || path.starts_with("generation.") || path == "tokenizer" ||
         path.starts_with("tokenizer.") || path.starts_with("eval.");
}

yaml::Node from_eval_form(yaml::Node file) {
  resolve_interpolations(file);
  rename_old_keys(file);
  yaml::Node generation = take(file, "generation"), tokenizer = take(file, "tokenizer");
  for (const char* same : {"val_temperature", "val_top_p", "val_top_k"}) take(generation, same);
  const yaml::Node model = take(generation, "model_name"), prompts = take(generation, "num_prompts_per_step");
  put(file, "policy.model_name", &model);
  put(file, "eval.num_prompts_per_step", &prompts);
  put(file, "policy.max_total_sequence_length", generation.find("vllm_cfg.max_model_len"));
  put(file, "policy.precision", generation.find("vllm_cfg.precision"));
  file.set("policy.generation", std::move(generation));
  if (tokenizer.is_map()) file.set("policy.tokenizer", std::move(tokenizer));
  return file;
}

}  // namespace hexad::compat
