#include "app/config_check.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "core/algorithm/run/preflight.hpp"
#include "core/config/load/defaults.hpp"

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

}  // namespace

std::vector<Problem> check_all(const config::Loaded& loaded) {
  std::vector<Problem> problems = config::check(loaded);
  if (std::ranges::any_of(problems, &Problem::is_error)) return problems;
  std::vector<Problem> more = algorithm::preflight(loaded.root, loaded.facts, *loaded.selection.catalog);
  check_installed(loaded, more);
  check_allowed(loaded, more);
  problems.insert(problems.begin(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  std::stable_partition(problems.begin(), problems.end(), std::mem_fn(&Problem::is_error));
  return problems;
}

}  // namespace hexad::cli
