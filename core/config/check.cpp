#include "core/config/check.hpp"

#include <functional>
#include <set>

#include <hexad/names.hpp>

#include "core/config/declaration/check/library.hpp"
#include "core/config/declaration/declared_rules.hpp"
#include "core/config/declaration/moved_keys.hpp"
#include "core/config/declaration/run_schema.hpp"
#include "core/config/load/defaults.hpp"
#include "core/config/load/load.hpp"
#include "core/config/rules/check_keys.hpp"
#include "core/config/rules/rules.hpp"
#include "core/config/schema/schema.hpp"
#include "lib/base/error.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/base/said/secret.hpp"
#include "lib/yaml/interpolation.hpp"
#include "lib/yaml/secret.hpp"

namespace hexad::config {

std::string Problem::text() const {
  const std::string place = one_line(location.text());
  return fmt::format("{}{}: {}: {}", place.empty() ? "" : place + ": ", is_error() ? "error" : "notice", one_line(key),
                     indented(without_secrets(message)));
}

namespace {

// The rules that chosen plugins declare; a generator's and an environment's where the run samples.
void check_plugins(const Loaded& loaded, bool samples, std::vector<Problem>& problems) {
  const World world = world_of(loaded.root);
  std::set<std::string> refused;
  for (const Problem& problem : problems) {
    if (problem.is_error()) refused.insert(problem.key);
  }
  for (const Chosen* chosen : loaded.selection.all()) {
    const bool wanted = samples || chosen->kind == plugin::Kind::backend || chosen->kind == plugin::Kind::loss;
    if (!chosen->declaration() || !wanted) continue;
    const Scope scope(loaded.root, chosen->block, world, loaded.model, refused);
    Checked checked = chosen->library ? chosen->library->ask(scope) : Checked();
    for (Problem& problem : checked.problems) {  // backend and generator may find the same in the model
      const auto same = [&](const Problem& other) {
        return other.key == problem.key && other.message == problem.message;
      };
      if (std::ranges::none_of(problems, same)) problems.push_back(std::move(problem));
    }
    std::ranges::move(check_declared(*chosen->declaration(), scope, checked.names), std::back_inserter(problems));
  }
}

// The engine's keys that only a backend could give an effect, and that this one's manifest does not list as read.
void tell_unread(const Loaded& loaded, RuleContext& context) {
  const Declaration* backend = loaded.selection.backend.declaration();
  for (const Key& key : loaded.schema.keys()) {
    const yaml::Node* value = key.for_backend ? loaded.root.find(key.path) : nullptr;
    if (!value || value->is_null() || value->location().file == kDefaultOrigin) continue;
    if (value->is_bool() && !value->as_bool()) continue;
    const std::string path = key.path.substr(key.path.find('.') + 1);
    const auto covers = [&](const std::string& read) { return path == read || path.starts_with(read + "."); };
    if (!backend || std::ranges::any_of(backend->reads, covers)) continue;
    context.notice(key.path, fmt::format("no effect with backend {}", loaded.selection.backend.plugin()));
  }
}

// Manifests that are refused, and plugins whose own keys nobody can check.
void tell_manifests(const Loaded& loaded, RuleContext& context) {
  for (const Chosen* chosen : loaded.selection.all()) {
    if (!chosen->installed) continue;
    const std::string& problem = chosen->installed->problem();
    if (!problem.empty()) context.error(chosen->block, problem);
    const yaml::Node* own = loaded.root.find(chosen->block + ".plugin_config");
    if (problem.empty() && !chosen->declaration() && own && own->is_map() && !own->entries().empty())
      context.notice(chosen->block + ".plugin_config",
                     fmt::format("is not checked: the manifest of '{}' declares no keys", chosen->plugin()));
  }
}

// A loss that needs what no run has: the plugin is at fault, whatever the configuration says.
void refuse_unknown_inputs(const Chosen& loss, RuleContext& context) {
  if (!loss.installed) return;
  const auto& known = loss.installed->candidate().manifest->inputs;
  const auto inputs = known.find(loss.installed->name());
  if (inputs == known.end()) return;
  for (const std::string& name : inputs->second) {
    if (!sdk::known_tensor(name) && !sdk::is_own_name(name))
      context.error(choosing_key(loss.kind, loss.block), fmt::format("'{}' needs '{}', which no run has{}{}", loss.name,
                                                                     name, sdk::meant_name(name), sdk::kOwnNames));
  }
}

// Rules about data-parallel ranks need to know how many ranks hold one copy of the model.
void tell_missing_fact(const Loaded& loaded, RuleContext& context) {
  const Installed* backend = loaded.selection.backend.installed;
  if (!backend || !backend->problem().empty() || context.training_ranks().value_or(1) == 1) return;
  const std::vector<std::string>& facts = backend->outline().facts;
  if (std::ranges::find(facts, "copy_ranks") == facts.end())
    context.notice(
        "policy.backend",
        fmt::format("what has to divide over data-parallel ranks is not checked: the manifest of '{}' has no "
                    "fact copy_ranks",
                    backend->name()));
}

// What of a plugin that the run does not use stands in the file: one line, where it is more than its switch.
void tell_dormant(const Selection& selection, RuleContext& context) {
  for (const Dormant& each : selection.dormant) {
    const Chosen& used = each.declaration->kind == plugin::Kind::backend     ? selection.backend
                         : each.declaration->kind == plugin::Kind::generator ? selection.generator
                                                                             : selection.loss;
    const char* does = each.declaration->kind == plugin::Kind::backend     ? "trains"
                       : each.declaration->kind == plugin::Kind::generator ? "generates"
                                                                           : "is the loss";
    for (const std::string& name : each.present) {
      const std::string path = each.block + "." + name;
      const yaml::Node* section = context.root().find(path);
      const auto is_switch = [&](const std::string& key) {
        return std::ranges::any_of(each.declaration->select,
                                   [&](const auto& s) { return s.first == name + "." + key; });
      };
      const bool more = !section->is_map() || std::ranges::any_of(section->entries(), [&](const auto& entry) {
        return !is_switch(entry.first) || (entry.second.is_bool() && entry.second.as_bool());
      });
      if (more && !section->is_null()) context.notice(path, fmt::format("not read: {} {}", used.plugin(), does));
    }
  }
}

std::vector<Problem> check_loaded(const Loaded& loaded) {
  const yaml::Node& root = loaded.root;
  RuleContext context(root, loaded.schema, loaded.facts);
  std::vector<std::string> dormant;  // what stands there of plugins that the run does not use
  for (const Dormant& each : loaded.selection.dormant) {
    for (const std::string& name : each.present) dormant.push_back(each.block + "." + name);
  }
  std::vector<Problem> problems = loaded.selection.problems;
  std::ranges::move(check_keys(root, loaded.schema, dormant,
                               "`docs/config.md` lists all keys, and keys of a plugin's own go into plugin_config"),
                    std::back_inserter(problems));
  std::ranges::move(check_standing(root, loaded.schema), std::back_inserter(problems));
  check_run_rules(context);
  const bool samples = context.algorithm() == Algorithm::grpo;
  check_data_rules(context);
  if (trains(root)) {
    if (samples) check_loss_rules(context);
    check_output_rules(context);
    check_batch_rules(context);
    if (samples) check_grpo_rules(context);
    check_supervised_rules(context);
    check_schedule_rules(context);
  }
  check_eval_rules(context);
  if (samples) check_generation_rules(context);
  if (samples) check_placement_rules(context);
  check_batch_invariant_rules(context);
  tell_dormant(loaded.selection, context);
  tell_unread(loaded, context);
  tell_manifests(loaded, context);
  if (trains(root)) refuse_unknown_inputs(loaded.selection.loss, context);
  if (trains(root)) tell_missing_fact(loaded, context);
  std::ranges::move(context.take(), std::back_inserter(problems));
  check_plugins(loaded, samples, problems);
  return problems;
}

// What a file in another form comes to: overrides of its own keys come before the translation, those of our keys after
// it.
Loaded load_translated(yaml::Node file, const std::vector<std::string>& overrides, const OtherForm& form,
                       const Schema& known) {
  std::vector<yaml::Override> later;
  for (const std::string& text : overrides) {
    yaml::Override parsed = yaml::parse_override(text);
    if (form.is_own_key(parsed.key)) {
      apply_override(file, parsed, form.keys ? &form.keys() : &known);
    } else {
      later.push_back(std::move(parsed));
    }
  }
  Translation translation = form.translate(std::move(file));
  Loaded result;
  result.root = std::move(translation.root);
  result.problems = std::move(translation.problems);
  for (const yaml::Override& override : later) apply_override(result.root, override, &known);
  return result;
}

// The file's own word on where plugins are, with what an override says of it.
std::shared_ptr<Catalog> catalog_of(const yaml::Node& file, const std::vector<std::string>& overrides) {
  yaml::Node root(yaml::Node::Map{});
  if (const yaml::Node* plugins = file.child("plugins")) root.set("plugins", *plugins);
  for (const std::string& text : overrides) {
    yaml::Override parsed = yaml::parse_override(text);
    if (parsed.key == "plugins.paths" && parsed.value) root.set("plugins.paths", *parsed.value);
  }
  try {
    resolve_interpolations(root);
  } catch (const Error&) {  // of keys elsewhere: said where the whole is resolved
  }
  return std::make_shared<Catalog>(root);
}

// Chooses plugins, and fills in what they and the engine have as defaults.
void complete(Loaded& loaded, const std::shared_ptr<Catalog>& catalog, const Compat& compat) {
  loaded.selection = select_plugins(loaded.root, catalog, compat);
  open_check_libraries(loaded.root, loaded.selection);
  loaded.schema = run_schema(loaded.selection);
  std::ranges::move(move_renamed(loaded.root, loaded.schema), std::back_inserter(loaded.problems));
  move_standing(loaded.root, loaded.schema);
  for (const Chosen& environment : loaded.selection.environments) {
    if (environment.declaration()) move_beside(loaded.root, environment.block, *environment.declaration());
  }
  loaded.model = model_names(loaded.root);
  fill_defaults(loaded.root, loaded.schema, loaded.model);
  resolve_interpolations(loaded.root);
  keep_secrets(loaded.root);
  refuse_masked(loaded.root);
  round_integers(loaded.root, loaded.schema);
  std::ranges::move(replace_synonyms(loaded.root, loaded.schema, loaded.selection),
                    std::back_inserter(loaded.problems));
  loaded.facts = read_facts(loaded.root, loaded.selection, world_of(loaded.root), loaded.model, loaded.problems);
}

}  // namespace

Loaded load_with_defaults(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                          const Compat& compat) {
  yaml::Node file = read_with_parents(path, compat.absent_parent, compat.look);
  keep_secrets(file);
  const std::shared_ptr<Catalog> catalog = catalog_of(file, overrides);
  Schema of_all;  // an override may name a key of any plugin
  if (!overrides.empty()) {
    Selection before = select_plugins(file, catalog, compat);
    of_all = known_schema(before);
    of_all.know(compat.names);
  }
  const Schema& known = overrides.empty() ? core_schema() : of_all;
  Loaded loaded;
  const auto form = std::ranges::find_if(compat.forms, [&](const OtherForm& each) { return each.is_it(file); });
  if (form != compat.forms.end()) {
    loaded = load_translated(std::move(file), overrides, *form, known);
  } else {
    for (const std::string& text : overrides) apply_override(file, yaml::parse_override(text), &known);
    loaded.root = std::move(file);
  }
  complete(loaded, catalog, compat);
  loaded.schema.know(compat.names);
  return loaded;
}

std::vector<Problem> check(const Loaded& loaded) {
  std::vector<Problem> problems = loaded.problems;
  // What is wrong with a value of a ROLL file is said once, under its own key.
  const auto said = [&](const Problem& problem) {
    return problem.location.line > 0 && std::ranges::any_of(loaded.problems, [&](const Problem& other) {
             return other.is_error() && other.location.text() == problem.location.text();
           });
  };
  for (Problem& problem : check_loaded(loaded)) {
    if (!said(problem)) problems.push_back(std::move(problem));
  }
  std::stable_partition(problems.begin(), problems.end(), std::mem_fn(&Problem::is_error));
  return problems;
}

Resolved resolve(const std::filesystem::path& path, const std::vector<std::string>& overrides, const Compat& compat) {
  Loaded loaded = load_with_defaults(path, overrides, compat);
  Resolved result;
  std::string errors;
  for (Problem& problem : check(loaded)) {
    if (problem.is_error()) {
      errors += (errors.empty() ? "" : "\n") + problem.text();
    } else {
      result.notices.push_back(std::move(problem));
    }
  }
  if (!errors.empty()) throw Error(ErrorKind::config, errors);
  result.root = std::move(loaded.root);
  result.facts = std::move(loaded.facts);
  return result;
}

}  // namespace hexad::config
