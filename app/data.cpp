// hexad data show CONFIG [key=value ...]
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>

#include "app/commands.hpp"
#include "app/console/output.hpp"
#include "app/data/show.hpp"
#include "app/program.hpp"
#include "compat/compat.hpp"
#include "core/algorithm/run/model_directory.hpp"
#include "core/config/typed/run_config.hpp"

namespace hexad::cli {

void add_data(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string config;
    std::vector<std::string> overrides;
    dataset_view::ShowOptions options;
    std::string score;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* data = app.add_subcommand("data", "Look at the data of a run");
  data->require_subcommand(1);
  CLI::App* show = data->add_subcommand("show", "Rows as the model will see them, their lengths, what is dropped");
  show->add_option("CONFIG", arguments->config, "YAML file of a run")->required();
  show->add_option("OVERRIDES", arguments->overrides, "key=value, e.g. data.max_input_seq_length=1024");
  CLI::Option* rows = show->add_option("--rows", arguments->options.rows, "So many rows (3; with --json all)")
                          ->check(CLI::NonNegativeNumber);
  show->add_flag("--validation", arguments->options.validation, "What is validated on, not what is trained on");
  show->add_option("--score", arguments->score,
                   "Rewards of the rows that are shown: of their expected answers, or generated ones")
      ->check(CLI::IsMember({"expected", "generated"}));
  show->add_flag("--json", arguments->options.json, "One JSON object a row");
  show->callback([arguments, rows, &exit_code] {
    dataset_view::ShowOptions& options = arguments->options;
    if (options.json && rows->count() == 0) options.rows = -1;
    std::optional<cluster::Spawner> spawner;  // before any thread
    if (arguments->score == "generated") spawner.emplace();
    const config::Resolved resolved = config::resolve(arguments->config, arguments->overrides, compat::all());
    const config::RunConfig run = config::run_config(resolved);
    const rollout::ModelText text =
        rollout::load_model_text(algorithm::find_model(run.policy.model_name), run.policy.tokenizer);
    const dataset_view::ScoredRun scored{resolved, run, text};
    if (spawner)
      options.score =
          dataset_view::generated_answers(scored, std::filesystem::read_symlink("/proc/self/exe"), &*spawner);
    else if (!arguments->score.empty())
      options.score = dataset_view::expected_answers(scored);
    options.colours = console::shows_colours(stdout);
    if (options.colours && !options.json) print_raw();  // the page has its own colours, and shows the rest by number
    dataset_view::show(run, text, options, std::cout);
    options.score = nullptr;  // workers end before the spawner
    exit_code = 0;
  });
}

}  // namespace hexad::cli
