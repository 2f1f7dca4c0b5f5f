#include "core/config/load/load.hpp"

#include "core/config/algorithm.hpp"

namespace hexad::config {
namespace {

// NeMo-RL's evaluations name MMLU in another language mmlu_LANGUAGE; answers are asked for in that language.
bool is_mmlu_translated(const yaml::Node& root) {
  const yaml::Node* name = root.find("data.dataset_name");
  if (!name || !name->is_string()) return false;
  return name->as_string().starts_with("mmlu_") && name->as_string() != "mmlu_pro";
}

std::string meaning(const yaml::Node& root, const Key& key) {
  if (key.synonym_of == "english_multichoice" && is_mmlu_translated(root)) return "multilingual_multichoice";
  return key.synonym_of;
}

bool is_chosen(const Selection& selection, const std::string& plugin) {
  return std::ranges::any_of(selection.all(), [&](const Chosen* each) { return each->plugin() == plugin; });
}

}  // namespace

std::vector<Problem> replace_synonyms(yaml::Node& root, const Schema& schema, const Selection& selection) {
  std::vector<Problem> problems;
  const auto replace = [&](yaml::Node& value, const Key& key, const std::string& text, const std::string& means,
                           const std::string& note) {
    value = yaml::Node(means, value.location());
    if (!key.plugin.empty() && !is_chosen(selection, key.plugin)) return;
    problems.push_back({Problem::Severity::notice, value.location(), key.path,
                        fmt::format("'{}' means {} here: {}", text, means, note)});
  };
  for (const Key& key : schema.keys()) {
    if (key.synonyms.empty()) continue;
    yaml::Node* value = root.find(key.path);
    if (!value || !value->is_string()) continue;
    const std::string text = value->as_string();
    if (std::ranges::find(key.synonyms, text) == key.synonyms.end()) continue;
    replace(*value, key, text, meaning(root, key), key.synonym_note);
  }
  // An engine of another system's, where no plugin serves it: the selection has taken the default already.
  yaml::Node* engine = root.find("policy.generation.backend");
  if (selection.is_engine_replaced && engine && engine->is_string()) {
    const std::string named = engine->as_string();  // the node is written to
    replace(*engine, *schema.find("policy.generation.backend"), named, kDefaultGenerator,
            "that engine does not run here, and settings of its own are not read");
  }
  return problems;
}

}  // namespace hexad::config
