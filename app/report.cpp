// hexad report RUN_DIR, --compare RUN_DIR..., --json RUN_DIR...
#include <iostream>

#include "app/commands.hpp"
#include "app/report/comparison.hpp"
#include "app/report/report.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/said/printable.hpp"

namespace hexad::cli {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  std::vector<std::string> run_dirs;
  bool compare = false, json = false;
  std::string out;
};

void report(const ReportOptions& options) {
  if (!options.compare && !options.json && options.run_dirs.size() > 1)
    fail(ErrorKind::config, "report: got {} directories. Give one, or --compare to draw them over each other",
         options.run_dirs.size());
  std::vector<report::RunRecord> runs;
  for (const std::string& directory : options.run_dirs) runs.push_back(report::read_run(directory));
  if (options.json) {
    std::cout << json_text(report::metrics_by_step(runs), 2) << "\n";
    return;
  }
  const fs::path beside = options.compare ? fs::path("compare.html") : fs::path(options.run_dirs[0]) / "report.html";
  const fs::path page = options.out.empty() ? beside : fs::path(options.out);
  report::write_page(runs, page);
  if (options.compare) std::cout << report::comparison(runs) << "\n";
  std::cout << one_line(page.string()) << "\n";
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand("report", "Write report.html of a run, or compare runs");
  command->add_option("RUN_DIR", options->run_dirs, "Directories with metrics.jsonl")->required();
  CLI::Option* compare = command->add_flag("--compare", options->compare, "One page and one table of all the runs");
  command->add_flag("--json", options->json, "Print {metric: {step: value}}, as NeMo-RL's check_metrics.py reads it")
      ->excludes(compare);
  command->add_option("--out", options->out, "The page (RUN_DIR/report.html; compare.html with --compare)");
  command->callback([options, &exit_code] {
    report(*options);
    exit_code = 0;
  });
}

}  // namespace hexad::cli
