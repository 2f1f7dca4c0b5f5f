#include "app/check/check.hpp"

#include <algorithm>
#include <functional>

#include "app/check/findings.hpp"
#include "app/config/fold.hpp"
#include "app/plan/check.hpp"
#include "compat/compat.hpp"
#include "core/algorithm/run/preflight.hpp"
#include "core/config/load/defaults.hpp"
#include "lib/base/error.hpp"
#include "lib/base/text.hpp"

namespace hexad::cli {
namespace {

using config::Problem;

// What asks more of the machine comes later, and rows come last: they want a model and an environment that are right.
void check_start(StartFindings& found) {
  const bool trains = found.start.trains && config::trains(found.loaded.root);
  found.add(algorithm::preflight(found.loaded.root, found.loaded.facts, *found.loaded.selection.catalog));
  check_plugins(found);
  check_model(found);
  check_family(found);
  check_machine(found);
  if (trains) {
    found.room = plan::room_here(found.loaded.root);
    found.add(plan::check_memory(found.loaded, found.room));
  }
  if (trains) check_metrics(found);
  if (trains) check_folders(found);
  if (!found.has_error()) check_data(found);
}

}  // namespace

Checked check_all(const config::Loaded& loaded, const Start& start) {
  Checked checked{config::check(loaded), 0, nullptr, {}};
  if (std::ranges::any_of(checked.problems, &Problem::is_error)) {
    checked.exit_code = Error(ErrorKind::config, "").exit_code();
  } else {
    StartFindings found(loaded, start);
    check_start(found);
    checked.exit_code = found.exit_code();
    checked.model = found.model;
    checked.room = found.room;
    std::vector<Problem> more = found.take();
    checked.problems.insert(checked.problems.begin(), std::make_move_iterator(more.begin()),
                            std::make_move_iterator(more.end()));
    std::stable_partition(checked.problems.begin(), checked.problems.end(), std::mem_fn(&Problem::is_error));
  }
  return checked;
}

Ready require_ready(const std::filesystem::path& path, const std::vector<std::string>& overrides, const Start& start) {
  config::Loaded loaded = config::load_with_defaults(path, overrides, compat::all());
  Checked checked = check_all(loaded, start);
  if (checked.exit_code != 0) {
    std::vector<std::string> lines;
    for (const Problem& problem : checked.problems)
      if (problem.is_error()) lines.push_back(problem.key.empty() ? problem.message : problem.text());
    const bool of_plugins = checked.exit_code == Error(ErrorKind::plugin, "").exit_code();
    throw Error(of_plugins ? ErrorKind::plugin : ErrorKind::config, joined(lines, "\n"));
  }
  return {{std::move(loaded.root), config::folded(checked.problems), std::move(loaded.facts)},
          std::move(checked.model),
          std::move(checked.room)};
}

}  // namespace hexad::cli
