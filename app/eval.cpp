// hexad eval CONFIG [key=value ...]
#include <filesystem>
#include <iostream>

#include "app/check/check.hpp"
#include "app/commands.hpp"
#include "app/inference/evaluate.hpp"
#include "core/config/typed/run_config.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"

namespace hexad::cli {
namespace {

void print(const config::EvalConfig& eval, const inference::Evaluation& result) {
  std::cout << fmt::format("{} over {} prompts, {} sample{} each: {:.4f}\n", inference::metric_name(eval),
                           result.prompts, eval.num_tests_per_prompt, eval.num_tests_per_prompt == 1 ? "" : "s",
                           result.score);
  if (result.unscored > 0)
    std::cout << fmt::format("  {} prompts have no score: fewer than {} of their samples could be scored\n",
                             result.unscored, eval.k_value);
  for (const auto& [name, value] : result.metrics) std::cout << fmt::format("  {:28} {:.4f}\n", name, value);
}

}  // namespace

void add_eval(CLI::App& app, int& exit_code) {
  struct Arguments {
    std::string config;
    std::vector<std::string> overrides;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("eval", "How good a model is at a data set");
  command->add_option("CONFIG", arguments->config, "YAML file, of an evaluation or of a run")->required();
  command->add_option("OVERRIDES", arguments->overrides, "key=value, e.g. policy.model_name=DIR eval.k_value=4");
  command->add_flag("--json", arguments->json, "One JSON object");
  command->callback([arguments, &exit_code] {
    const config::Resolved resolved =
        require_ready(arguments->config, arguments->overrides, {.trains = false, .launched = true}).resolved;
    cluster::Spawner spawner;
    const inference::Evaluation result =
        inference::evaluate(resolved, {std::filesystem::read_symlink("/proc/self/exe"), &spawner});
    if (arguments->json) {
      std::cout << json_text(with_named_infinities(inference::to_json(result))) << '\n';
    } else {
      print(config::run_config(resolved).eval, result);
    }
    if (!result.not_saved.empty()) fail(ErrorKind::data, "{}", result.not_saved);
    exit_code = 0;
  });
}

}  // namespace hexad::cli
