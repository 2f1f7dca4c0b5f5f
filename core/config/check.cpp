#include "core/config/check.hpp"

#include <functional>

#include "core/base/error.hpp"
#include "core/config/check_keys.hpp"
#include "core/config/defaults.hpp"
#include "core/config/eval_form.hpp"
#include "core/config/inherit.hpp"
#include "core/config/load.hpp"
#include "core/config/megatron_overrides.hpp"
#include "core/config/override_apply.hpp"
#include "core/config/roll/roll.hpp"
#include "core/config/roll/schema.hpp"
#include "core/config/rules.hpp"
#include "core/config/schema/schema.hpp"
#include "core/config/synonyms.hpp"

namespace hexad::config {

std::string Problem::text() const {
  const std::string place = location.text();
  return fmt::format("{}{}: {}: {}", place.empty() ? "" : place + ": ", is_error() ? "error" : "notice", key, message);
}

namespace {

std::vector<Problem> check_root(const Node& root) {
  RuleContext context(root);
  std::vector<std::string> dormant;  // the sections of backends that do not train
  for (const char* backend : {"dtensor", "megatron"}) {
    if (context.backend() != backend) dormant.push_back(fmt::format("policy.{}_cfg", backend));
  }
  std::vector<Problem> problems = check_keys(
      root, schema(), dormant, "`docs/config.md` lists all keys, and keys of a plugin's own go into plugin_config");
  check_run_rules(context);
  const bool samples = context.algorithm() == Algorithm::grpo;
  if (trains(root)) {
    if (samples) check_loss_rules(context);
    check_batch_rules(context);
    if (samples) check_grpo_rules(context);
    check_supervised_rules(context);
    check_schedule_rules(context);
  }
  check_eval_rules(context);
  check_dtensor_rules(context);
  check_megatron_rules(context);
  if (samples) check_generation_rules(context);
  if (samples) check_placement_rules(context);
  check_batch_invariant_rules(context);
  std::ranges::move(context.take(), std::back_inserter(problems));
  return problems;
}

// What a file in another form comes to: overrides of its own keys come before the translation, those of NeMo-RL's keys after it.
Loaded load_translated(Node file, const std::vector<std::string>& overrides,
                       const std::function<bool(const std::string& key)>& is_own, const Schema& own,
                       const std::function<Loaded(Node file)>& translate) {
  std::vector<Override> later;
  for (const std::string& text : overrides) {
    Override parsed = parse_override(text);
    if (is_own(parsed.key)) {
      apply_override(file, parsed, &own);
    } else {
      later.push_back(std::move(parsed));
    }
  }
  Loaded result = translate(std::move(file));
  for (const Override& override : later) apply_override(result.root, override, &schema());
  return result;
}

Loaded from_roll(Node file) {
  roll::Translation translation = roll::translate(std::move(file));
  return {std::move(translation.root), std::move(translation.problems)};
}

}  // namespace

Loaded load_with_defaults(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  Node file = read_with_parents(path);
  Loaded loaded;
  if (roll::is_roll(file)) {
    loaded = load_translated(std::move(file), overrides, roll::is_roll_key, roll::roll_schema(), from_roll);
  } else if (is_eval_form(file)) {
    loaded = load_translated(std::move(file), overrides, is_eval_form_key, schema(), [](Node form) {
      return Loaded{from_eval_form(std::move(form)), {}};
    });
  } else {
    for (const std::string& text : overrides) apply_override(file, parse_override(text), &schema());
    loaded.root = std::move(file);
  }
  lift_model_overrides(loaded.root);
  fill_defaults(loaded.root);
  resolve_interpolations(loaded.root);
  std::ranges::move(replace_synonyms(loaded.root), std::back_inserter(loaded.problems));
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
  for (Problem& problem : check_root(loaded.root)) {
    if (!said(problem)) problems.push_back(std::move(problem));
  }
  std::stable_partition(problems.begin(), problems.end(), std::mem_fn(&Problem::is_error));
  return problems;
}

Resolved resolve(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  Loaded loaded = load_with_defaults(path, overrides);
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
  return result;
}

}  // namespace hexad::config
