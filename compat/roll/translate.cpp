#include "compat/roll/pass.hpp"
#include "compat/roll/pipelines.hpp"
#include "compat/roll/roll.hpp"
#include "compat/roll/schema/schema.hpp"
#include "lib/base/error.hpp"
#include "lib/yaml/interpolation.hpp"
#include "lib/yaml/merge.hpp"

namespace hexad::config::roll {
namespace {

// Of all its pipelines, of which RLVR and DPO are translated.
const std::vector<std::string> kMarks = {"actor_train",       "actor_infer", "sft_train",  "student_train",  "student",
                                         "train_env_manager", "custom_envs", "custom_env", "env_manager_cls"};

// Adds the first key of every reference in a value: `a` of "${a}" and of "${a.b}".
void add_referred(const yaml::Node& node, std::set<std::string>& keys) {
  if (node.is_string()) {
    const std::string_view text = node.as_string();
    for (size_t at = text.find("${"); at != text.npos; at = text.find("${", at + 2))
      keys.emplace(text.substr(at + 2, text.find_first_of(".}", at + 2) - (at + 2)));
  } else if (node.is_list()) {
    for (const yaml::Node& item : node.items()) add_referred(item, keys);
  } else if (node.is_map()) {
    for (const auto& [name, value] : node.entries()) add_referred(value, keys);
  }
}

// Top-level names of a file's own that values refer to, DeepSpeed presets among them.
std::set<std::string> variables(const yaml::Node& file) {
  std::set<std::string> referred, result;
  add_referred(file, referred);
  for (const auto& [name, value] : file.entries()) {
    if (!preference_schema().find(name) && (name.starts_with("deepspeed_zero") || referred.contains(name)))
      result.insert(name);
  }
  return result;
}

// A role's strategy_config, with its additional_configs beside the other keys.
yaml::Node settings_of(const yaml::Node& file, const std::string& role) {
  const yaml::Node* config = file.find(role + ".strategy_args.strategy_config");
  yaml::Node settings = config && config->is_map() ? *config : yaml::Node(yaml::Node::Map{}, file.location());
  const yaml::Node* found = settings.child("additional_configs");
  if (!found || !found->is_map()) return settings;
  const yaml::Node more = *found;
  for (const auto& [name, value] : more.entries()) {
    if (!settings.child(name)) settings.set(name, value);
  }
  std::erase_if(settings.entries(), [](const auto& entry) { return entry.first == "additional_configs"; });
  return settings;
}

// Of actor_infer: what its strategy_config holds, and what of it is known.
struct Inference {
  const yaml::Node& settings;
  Part& known;
};

void run(Pass& p, Part& settings, Inference inference, const std::string& strategy, bool preferences) {
  translate_places(p);
  translate_devices(p);
  if (!preferences) {
    translate_run(p);
    translate_algorithm(p);
    translate_async(p);
  }
  translate_strategy(p, settings, strategy);
  translate_training(p);
  if (preferences) {
    translate_preferences(p);
    translate_batching(p);
    return;
  }
  translate_samples(p);
  translate_batching(p);
  translate_generation(p, inference.settings, inference.known);
  translate_reference(p);
  translate_data(p);
}

}  // namespace

bool is_roll(const yaml::Node& root) {
  if (!root.is_map() || root.child("policy") || root.child("grpo")) return false;
  return std::ranges::any_of(kMarks, [&](const std::string& mark) { return root.child(mark); });
}

bool is_roll_key(const std::string& path) {
  const std::string first = path.substr(0, path.find('.'));
  return first == "hexad" || !config::core_schema().find(first);
}

void refuse_other_pipeline(const yaml::Node& file) {
  if (!is_roll(file)) return;
  if (const auto other = other_pipeline(file)) fail(ErrorKind::config, "{}", other->text());
}

Translation translate(yaml::Node file) {
  refuse_other_pipeline(file);  // what its parents say counts now
  const std::set<std::string> own = variables(file);
  resolve_interpolations(file);
  std::erase_if(file.entries(), [&](const auto& entry) { return own.contains(entry.first); });

  const char* const strategy_key = "actor_train.strategy_args.strategy_name";
  const char* const settings_key = "actor_train.strategy_args.strategy_config";
  const bool preferences = is_preferences(file);
  Part part(file, preferences ? preference_schema() : roll_schema(), "");
  const std::string strategy = part.text(strategy_key).value_or("");
  part.value(settings_key);
  const yaml::Node settings_node = settings_of(file, "actor_train");
  const Schema* schema = strategy_schema(strategy);
  static const Schema none;
  Part settings(settings_node, schema ? *schema : none, std::string(settings_key) + ".");
  Pass pass{part, yaml::Node(yaml::Node::Map{}, file.location())};
  const Schema* const sglang = is_sglang(file) ? strategy_schema("sglang") : nullptr;
  const yaml::Node inference_node = settings_of(file, "actor_infer");
  const yaml::Node known_node = sglang ? known_settings(inference_node) : yaml::Node(yaml::Node::Map{});
  Part inference(known_node, sglang ? *sglang : none, "actor_infer.strategy_args.strategy_config.");
  run(pass, settings, {inference_node, inference}, strategy, preferences);

  const yaml::Node* hexad = part.given("hexad");
  if (hexad && hexad->is_map()) merge(pass.out, {}, *hexad);
  std::vector<Missing> missing;
  std::vector<Problem> problems = part.problems(missing);
  if (schema) std::ranges::move(settings.problems(missing), std::back_inserter(problems));
  if (sglang) std::ranges::move(inference.problems(missing), std::back_inserter(problems));
  return {std::move(pass.out), in_few_lines(std::move(problems), std::move(missing), file)};
}

}  // namespace hexad::config::roll
