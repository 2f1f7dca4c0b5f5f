// hexad plan CONFIG [key=value ...]
#include "app/plan/advice.hpp"

#include <iostream>

#include "app/commands.hpp"
#include "app/plan/memory_plan.hpp"
#include "app/plan/room.hpp"
#include "app/plan/table.hpp"
#include "compat/compat.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"

namespace hexad::cli {
namespace {

struct PlanArguments {
  std::string config, memory;
  std::vector<std::string> overrides;
  bool json = false;
};

// An invalid configuration has no plan: what is wrong is said as `train` says it.
config::Loaded loaded_of(const PlanArguments& arguments) {
  config::Loaded loaded = config::load_with_defaults(arguments.config, arguments.overrides, compat::all());
  std::string errors;
  for (const config::Problem& problem : config::check(loaded))
    if (problem.is_error()) errors += (errors.empty() ? "" : "\n") + problem.text();
  if (!errors.empty()) throw Error(ErrorKind::config, errors);
  return loaded;
}

plan::Room room_of(const PlanArguments& arguments, const yaml::Node& root) {
  if (arguments.memory.empty()) return plan::room_here(root);
  const std::optional<int64_t> bytes = plan::bytes_of_text(arguments.memory);
  if (!bytes)
    fail(ErrorKind::config, "--memory: got '{}', wanted a size such as 80GiB, 24GB or 640MiB", arguments.memory);
  return plan::room_elsewhere(root, *bytes);
}

int run(const PlanArguments& arguments) {
  config::Loaded loaded = loaded_of(arguments);
  const plan::Room room = room_of(arguments, loaded.root);
  loaded = plan::on_device(loaded, room.on_cards);
  const plan::MemoryPlan planned = plan::memory_plan(loaded, room.bytes);
  const std::vector<plan::Saving> savings = plan::best_savings(loaded, room.bytes);
  std::cout << (arguments.json ? json_text(plan::json_of(planned, room, savings), 2) + '\n'
                               : plan::table(planned, room, savings));
  return plan::fits(planned, room).value_or(true) ? 0 : 1;
}

}  // namespace

void add_plan(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand("plan", "What each rank will hold of memory, and whether that fits");
  command->add_option("CONFIG", arguments->config, "YAML file of a run")->required();
  command->add_option("OVERRIDES", arguments->overrides, "key=value, +key=value, ++key=value, ~key");
  command->add_option("--memory", arguments->memory, "What a rank has, of a card that is not here: 80GiB, 24GB");
  command->add_flag("--json", arguments->json, "One JSON object");
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace hexad::cli
