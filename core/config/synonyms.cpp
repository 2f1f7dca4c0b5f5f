#include "core/config/synonyms.hpp"

#include "core/config/rules.hpp"
#include "core/config/schema/schema.hpp"

namespace hexad::config {
namespace {

// NeMo-RL's evaluations name MMLU in another language mmlu_LANGUAGE; answers are asked for in that language.
bool is_mmlu_translated(const Node& root) {
  const Node* name = root.find("data.dataset_name");
  if (!name || !name->is_string()) return false;
  return name->as_string().starts_with("mmlu_") && name->as_string() != "mmlu_pro";
}

std::string meaning(const Node& root, const Key& key) {
  if (key.synonym_of == "english_multichoice" && is_mmlu_translated(root)) return "multilingual_multichoice";
  return key.synonym_of;
}

}  // namespace

std::vector<Problem> replace_synonyms(Node& root) {
  const bool megatron = RuleContext(root).backend() == "megatron";
  std::vector<Problem> problems;
  for (const Key& key : schema().keys()) {
    if (key.synonyms.empty()) continue;
    Node* value = root.find(key.path);
    if (!value || !value->is_string()) continue;
    const std::string text = value->as_string(), means = meaning(root, key);
    if (std::ranges::find(key.synonyms, text) == key.synonyms.end()) continue;
    *value = Node(means, value->location());
    if (!megatron && key.path.starts_with("policy.megatron_cfg.")) continue;
    problems.push_back({Problem::Severity::notice, value->location(), key.path,
                        fmt::format("'{}' means {} here: {}", text, means, key.synonym_note)});
  }
  return problems;
}

}  // namespace hexad::config
