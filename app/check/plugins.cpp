// Plugins that the run would load.
#include <hexad/names.hpp>

#include "app/check/findings.hpp"
#include "core/algorithm/run/preflight.hpp"
#include "core/algorithm/run/train_run.hpp"
#include "core/config/load/defaults.hpp"
#include "core/plugin/precheck.hpp"

namespace hexad::cli {
namespace {

// One that nobody has named is the default, of which the configuration says nothing that is wrong.
void check_installed(StartFindings& found, const config::Chosen& chosen) {
  const std::string key = config::choosing_key(chosen.kind, chosen.block);
  const yaml::Node* named = found.loaded.root.find(key);
  const std::string why = found.loaded.selection.catalog->why_missing(chosen.kind, chosen.name);
  if (!named || named->location().file == config::kDefaultOrigin)
    found.not_here(key, why);
  else
    found.error(key, why);
}

// What the loader refuses before it opens the library.
void check_file(StartFindings& found, const config::Chosen& chosen, const plugin::Options& options) {
  try {
    plugin::check_manifest(chosen.installed->candidate(), options);
  } catch (const Error& error) {
    const std::string pins = "plugins.pin", what = error.what();
    found.plugin(what.find(pins) != what.npos ? pins : config::choosing_key(chosen.kind, chosen.block), what);
  }
}

// What the loss cannot do without, and no run of this algorithm has.
void check_inputs(StartFindings& found, const config::Chosen& loss) {
  const auto& of_losses = loss.installed->candidate().manifest->inputs;
  const auto inputs = of_losses.find(loss.installed->name());
  if (inputs == of_losses.end()) return;
  for (const std::string& name : inputs->second) {
    const sdk::KnownTensor* known = sdk::known_tensor(name);
    const char* algorithm = config::name_of(found.run.algorithm);
    if (known && !known->is_of(algorithm))
      found.error(config::choosing_key(loss.kind, loss.block),
                  fmt::format("'{}' needs '{}', which a run of {} does not have{}", loss.name, name, algorithm,
                              known->algorithms.empty() ? "" : fmt::format(" (one of {} does)", known->algorithms)));
  }
}

}  // namespace

void check_plugins(StartFindings& found) {
  const plugin::Options options = algorithm::plugin_options(found.loaded.root);
  if (!options.enabled) return found.error("plugins.enabled", "false, and no run does without plugins: leave it out");
  for (const config::Chosen* chosen : found.loaded.selection.all()) {
    const bool is_trainer = chosen->kind == plugin::Kind::backend || chosen->kind == plugin::Kind::loss;
    if (!algorithm::is_used(found.loaded, *chosen) || (is_trainer && !found.start.trains)) continue;
    if (!chosen->installed) {
      check_installed(found, *chosen);
      continue;
    }
    check_file(found, *chosen, options);
    if (chosen->kind == plugin::Kind::loss) check_inputs(found, *chosen);
  }
}

}  // namespace hexad::cli
