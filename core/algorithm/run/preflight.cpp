#include "core/algorithm/run/preflight.hpp"

#include <algorithm>

#include "core/algorithm/schedule/schedule.hpp"
#include "core/config/load/defaults.hpp"
#include "core/config/rules/rules.hpp"
#include "core/config/typed/run_config.hpp"
#include "core/environment/make.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::algorithm {
namespace {

using config::Problem;
using yaml::Node;

// A dataset's env_name, and where it is written.
struct EnvName {
  std::string name = "math", key;
  yaml::Location location;
  bool used = true;  // false: every dataset has one of its own
};

EnvName env_name_of(const Node& root, const std::string& dataset) {
  for (const std::string& key :
       {dataset + ".env_name", std::string("data.default.env_name"), std::string("data.env_name")}) {
    const Node* node = root.find(key);
    if (node && node->is_string()) return {node->as_string(), key, node->location()};
  }
  return {.key = dataset + ".env_name", .location = root.nearest(dataset).location()};
}

// Those of all datasets, each place once, and those that datasets would take over.
std::vector<EnvName> env_names(const Node& root) {
  std::vector<EnvName> names;
  const auto add = [&](const std::string& dataset) {
    EnvName name = env_name_of(root, dataset);
    if (std::ranges::find(names, name.key, &EnvName::key) == names.end()) names.push_back(std::move(name));
  };
  for (const std::string list : {"data.train", "data.validation"}) {
    const Node* sets = root.find(list);
    if (sets && sets->is_map()) add(list);
    for (size_t i = 0; sets && sets->is_list() && i < sets->items().size(); ++i) add(fmt::format("{}.{}", list, i));
  }
  if (names.empty() && root.has("data.dataset_name")) add("data");
  if (names.empty()) return names;
  for (const std::string shared : {"data.default.env_name", "data.env_name"}) {
    const Node* node = root.find(shared);
    const bool known = std::ranges::find(names, shared, &EnvName::key) != names.end();
    if (node && node->is_string() && !known) names.push_back({node->as_string(), shared, node->location(), false});
  }
  return names;
}

// Of "env.mine.rewards[0].weight: want a number": the key as overrides write it, and what follows.
Problem problem_of(const Node& root, const std::string& message) {
  const size_t end = std::min(message.find(": "), message.size());
  std::string key = message.substr(0, end);
  for (size_t at; (at = key.find('[')) != key.npos;) key[at] = '.';
  std::erase(key, ']');
  const bool known = end < message.size() && root.find(key.substr(0, key.find('.'))) && key.find(' ') == key.npos;
  if (!known) return {Problem::Severity::error, root.location(), "", message};
  return {Problem::Severity::error, root.nearest(key).location(), key, message.substr(end + 2)};
}

void check_environment(const Node& root, const config::EnvConfig& sections, const EnvName& used,
                       const config::Catalog& catalog, std::vector<Problem>& problems) {
  std::vector<std::string> known = environment::plugin_names(catalog);
  for (const auto& [name, describes] : environment::environment_names()) known.push_back(name);
  std::ranges::sort(known);
  const bool needs_no_section = std::ranges::find(known, used.name) != known.end();
  const auto section = sections.find(used.name);
  if (!needs_no_section && (section == sections.end() || section->second.empty())) {
    for (const auto& [name, value] : sections) {
      if (!value.empty() && std::ranges::find(known, name) == known.end()) known.push_back(name);
    }
    problems.push_back({Problem::Severity::error, used.location, used.key,
                        fmt::format("unknown environment '{0}'{1}; known: {2}. Your own: give it a program "
                                    "(env.{0}.command), a Python file (env.{0}.python), a plugin (env.{0}.plugin) or "
                                    "parts (env.{0}.rewards)",
                                    used.name, did_you_mean(used.name, known), joined(known))});
    return;
  }
  if (!used.used) return;
  try {
    environment::check_section(used.name,
                               section == sections.end() ? nlohmann::ordered_json::object() : section->second, catalog);
  } catch (const Error& error) {
    Problem problem = problem_of(root, error.what());
    // A section that makes nothing: its name is what is unknown.
    if (std::string(error.what()).starts_with("env_name: ")) {
      problem.location = used.location, problem.key = used.key;
      problem.message = std::string(error.what()).substr(std::string("env_name: ").size());
    }
    problems.push_back(std::move(problem));
  }
}

}  // namespace

std::vector<Problem> preflight(const Node& root, const config::RunFacts& facts, const config::Catalog& catalog) {
  std::vector<Problem> problems;
  try {
    const config::RunConfig run = config::run_config(root, facts);
    if (run.algorithm == config::Algorithm::grpo) {
      for (const EnvName& used : env_names(root)) check_environment(root, run.env, used, catalog, problems);
    }
    if (config::trains(root)) make_schedule(run);
  } catch (const Error& error) {
    problems.push_back(problem_of(root, error.what()));
  }
  return problems;
}

std::string unknown_metric(const std::string& name, const std::vector<std::string>& known) {
  return fmt::format("got '{}', which validation does not tell{}; it tells: {}", name, did_you_mean(name, known),
                     joined(known));
}

bool is_used(const config::Loaded& loaded, const config::Chosen& chosen) {
  if (chosen.kind == plugin::Kind::generator) return loaded.root.has("policy.generation");
  if (chosen.kind != plugin::Kind::environment) return config::trains(loaded.root);
  return std::ranges::any_of(env_names(loaded.root),
                             [&](const EnvName& each) { return each.used && "env." + each.name == chosen.block; });
}

}  // namespace hexad::algorithm
