#include "core/config/eval_form.hpp"

#include "core/config/interpolation.hpp"

namespace hexad::config {
namespace {

// Takes a key out of a map; null if it has none.
Node take(Node& map, std::string_view key) {
  Node::Map& entries = map.entries();
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    if (entry->first != key) continue;
    Node value = std::move(entry->second);
    entries.erase(entry);
    return value;
  }
  return {};
}

void put(Node& root, const std::string& path, const Node* value) {
  if (value && !value->is_null() && !root.has(path)) root.set(path, *value);
}

}  // namespace

bool is_eval_form(const Node& root) {
  const Node* generation = root.child("generation");
  return root.child("eval") && generation && generation->is_map();
}

bool is_eval_form_key(const std::string& path) {
  return path == "generation" || path.starts_with("generation.") || path == "tokenizer" ||
         path.starts_with("tokenizer.") || path.starts_with("eval.");
}

Node from_eval_form(Node file) {
  resolve_interpolations(file);
  Node generation = take(file, "generation"), tokenizer = take(file, "tokenizer");
  for (const char* same : {"val_temperature", "val_top_p", "val_top_k"}) take(generation, same);
  const Node model = take(generation, "model_name"), prompts = take(generation, "num_prompts_per_step");
  put(file, "policy.model_name", &model);
  put(file, "eval.num_prompts_per_step", &prompts);
  put(file, "policy.max_total_sequence_length", generation.find("vllm_cfg.max_model_len"));
  put(file, "policy.precision", generation.find("vllm_cfg.precision"));
  file.set("policy.generation", std::move(generation));
  if (tokenizer.is_map()) file.set("policy.tokenizer", std::move(tokenizer));
  return file;
}

}  // namespace hexad::config
