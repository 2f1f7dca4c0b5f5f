#include "app/config_check.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "core/algorithm/run/model_directory.hpp"
#include "core/algorithm/run/preflight.hpp"
#include "core/config/load/defaults.hpp"
#include "core/config/typed/run_config.hpp"
#include "core/data/dataset/dataset.hpp"
#include "core/rollout/model_text.hpp"
#include "lib/base/error.hpp"
#include "lib/hub/hub.hpp"

namespace hexad::cli {
namespace {

using config::Problem;
using yaml::Node;

// Plugins that the run would load, and that are not there. One that nobody has named is the default, of which the
// configuration says nothing that is wrong.
void check_installed(const config::Loaded& loaded, std::vector<Problem>& problems) {
  for (const config::Chosen* chosen : loaded.selection.all()) {
    if (chosen->installed || !algorithm::is_used(loaded, *chosen)) continue;
    const std::string key = config::choosing_key(chosen->kind, chosen->block);
    const Node* named = loaded.root.find(key);
    const bool is_default = !named || named->location().file == config::kDefaultOrigin;
    problems.push_back({is_default ? Problem::Severity::notice : Problem::Severity::error,
                        loaded.root.nearest(key).location(), key,
                        loaded.selection.catalog->why_missing(chosen->kind, chosen->name)});
  }
}

// Plugins that are there, and that the section `plugins` would have the run refuse.
void check_allowed(const config::Loaded& loaded, std::vector<Problem>& problems) {
  const auto error = [&](const char* key, const std::string& message) {
    problems.push_back({Problem::Severity::error, loaded.root.nearest(key).location(), key, message});
  };
  const Node *enabled = loaded.root.find("plugins.enabled"), *pins = loaded.root.find("plugins.pin");
  if (enabled && enabled->is_bool() && !enabled->as_bool())
    return error("plugins.enabled", "false, and no run does without plugins: leave it out");
  if (!pins || !pins->is_map() || pins->entries().empty()) return;
  for (const config::Chosen* chosen : loaded.selection.all()) {
    if (!chosen->installed || !algorithm::is_used(loaded, *chosen)) continue;
    const plugin::Manifest& manifest = *chosen->installed->candidate().manifest;
    const Node* pin = pins->child(manifest.name);
    const std::string has = "sha256:" + manifest.sha256;
    if (!pin) error("plugins.pin", fmt::format("'{}' is not listed, and nothing unlisted loads", manifest.name));
    if (pin && pin->is_string() && pin->as_string() != has && !manifest.sha256.empty())
      error("plugins.pin", fmt::format("{} is {}, the plugin has {}", manifest.name, pin->as_string(), has));
  }
}

// A tokenizer of the Hub that no cache has, or a folder without one, as of a model whose config.json alone is here.
bool is_elsewhere(const std::string& model_dir, const std::string& tokenizer) {
  std::error_code unreadable;
  const std::filesystem::path folder = tokenizer.empty() ? model_dir : tokenizer;
  if (std::filesystem::is_directory(folder, unreadable)) return !exists(folder / "tokenizer.json", unreadable);
  return hub::is_absent(hub::Use::tokenizer, tokenizer);
}

// The tokenizer and its chat template, where the model is here.
void check_tokenizer(const Node& root, const config::RunConfig& run, std::vector<Problem>& problems) {
  std::string model_dir;
  try {
    model_dir = algorithm::find_model(run.policy.model_name);
  } catch (const Error&) {  // said of the model
    return;
  }
  try {
    rollout::load_model_text(model_dir, run.policy.tokenizer);
  } catch (const Error& error) {
    std::string key = "policy.tokenizer", message = error.what();
    for (const std::string member : {".name", ".chat_template"}) {
      if (!message.starts_with(key + member + ": ")) continue;
      key += member, message = message.substr(key.size() + 2);
      break;
    }
    const bool is_told = is_elsewhere(model_dir, run.policy.tokenizer.name);
    problems.push_back(
        {is_told ? Problem::Severity::notice : Problem::Severity::error, root.nearest(key).location(), key, message});
  }
}

// What keeps a run here from finding the files of a data set. Empty: nothing.
std::string why_not_here(const config::DatasetConfig& set) {
  const std::string name = set.data_path.value_or(set.dataset_name);
  std::error_code unreadable;
  if (data::is_generated(set) || std::filesystem::exists(name, unreadable)) return "";
  try {
    if (hub::find(hub::Use::data, set.data_path ? "data_path" : "dataset_name", name)) return "";
  } catch (const Error& error) {
    return error.what();
  }
  return fmt::format("there is no such file or folder here: {}{}", name, hub::how_to_fetch(hub::Use::data, name));
}

// Data often is where the run will be, and not here: notices, each once.
void check_data(const Node& root, const std::string& key, const std::vector<config::DatasetConfig>& sets,
                std::vector<Problem>& problems) {
  for (const config::DatasetConfig& set : sets) {
    const std::string why = why_not_here(set);
    if (!why.empty() && std::ranges::find(problems, why, &Problem::message) == problems.end())
      problems.push_back({Problem::Severity::notice, root.nearest(key).location(), key, why});
  }
}

void check_files(const config::Loaded& loaded, std::vector<Problem>& problems) {
  const config::RunConfig run = config::run_config(loaded.root, loaded.facts);
  check_tokenizer(loaded.root, run, problems);
  check_data(loaded.root, "data.train", run.data.train, problems);
  check_data(loaded.root, "data.validation", run.data.validation, problems);
}

}  // namespace

std::vector<Problem> check_all(const config::Loaded& loaded) {
  std::vector<Problem> problems = config::check(loaded);
  if (std::ranges::any_of(problems, &Problem::is_error)) return problems;
  std::vector<Problem> more = algorithm::preflight(loaded.root, loaded.facts, *loaded.selection.catalog);
  check_installed(loaded, more);
  check_allowed(loaded, more);
  if (std::ranges::none_of(more, &Problem::is_error)) check_files(loaded, more);
  problems.insert(problems.begin(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  std::stable_partition(problems.begin(), problems.end(), std::mem_fn(&Problem::is_error));
  return problems;
}

}  // namespace hexad::cli
