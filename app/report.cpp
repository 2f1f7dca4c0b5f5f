// hexad report RUN_DIR..., --serve, --json
#include <csignal>
#include <iostream>
#include <system_error>

#include "app/commands.hpp"
#include "app/report/comparison.hpp"
#include "app/report/report.hpp"
#include "app/report/resumption.hpp"
#include "app/report/serve.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/said/printable.hpp"

namespace hexad::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kEndedBySignal = 128;  // and its number, as shells say it
constexpr uint16_t kUsualPort = 8640;

struct ReportOptions {
  std::vector<std::string> run_dirs;
  bool compare = false, json = false, serve = false;
  std::optional<uint16_t> port;
  std::string out;
};

void print_json(const ReportOptions& options) {
  std::vector<report::RunRecord> runs;
  for (const std::string& directory : options.run_dirs) runs.push_back(report::read_run(report::newest_run(directory)));
  std::cout << json_text(report::metrics_by_step(runs), 2) << "\n";
}

std::vector<fs::path> named(const ReportOptions& options) { return {options.run_dirs.begin(), options.run_dirs.end()}; }

void write(const ReportOptions& options) {
  const std::vector<report::RunRecord> runs = report::read_named(named(options));
  for (const report::RunRecord& run : runs) {
    for (const std::string& line : report::resumptions(run)) std::cerr << one_line(line) << "\n";
  }
  const bool compares = options.compare || runs.size() > 1;
  const fs::path beside = compares ? fs::path("compare.html") : runs[0].directory / "report.html";
  const fs::path page = options.out.empty() ? beside : fs::path(options.out);
  report::write_page(runs, page);
  if (compares) std::cout << report::comparison(runs) << "\n";
  std::cout << one_line(page.string()) << "\n";
}

// The port that was asked for, or the usual one, or where that is taken any.
http::LocalServer listen(std::optional<uint16_t> port, const http::Handler& handler) {
  try {
    return {port.value_or(kUsualPort), handler};
  } catch (const std::system_error& error) {
    if (port)
      fail(ErrorKind::config, "report --serve: cannot listen on {}. Give --port another number, or 0 for any free one",
           error.what());
  }
  return {0, handler};
}

int serve(const ReportOptions& options) {
  for (const std::string& directory : options.run_dirs) {
    if (!fs::is_directory(directory))
      fail(ErrorKind::data, "report --serve: {} is no directory. Wanted: that of a run, or its logger.log_dir",
           directory);
  }
  http::LocalServer server = listen(options.port, report::LiveReport(named(options)));
  std::cout << fmt::format("http://127.0.0.1:{}/ until Ctrl-C", server.port()) << std::endl;
  return kEndedBySignal + server.run();
}

}  // namespace

void add_report(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand("report", "Write report.html of a run, or a page that compares runs");
  command->add_option("RUN_DIR", options->run_dirs, "Directories of runs, or a logger.log_dir: its newest run")
      ->required();
  CLI::Option* compare = command->add_flag("--compare", options->compare, "Compare, as several directories do");
  CLI::Option* json =
      command->add_flag("--json", options->json, "Print {metric: {step: value}}, as check_metrics.py of NeMo-RL reads")
          ->excludes(compare);
  CLI::Option* out =
      command->add_option("--out", options->out, "The page (RUN_DIR/report.html; of several runs compare.html)");
  CLI::Option* serve_flag =
      command->add_flag("--serve", options->serve, "Show the page on 127.0.0.1, and draw it anew while runs go on")
          ->excludes(json)
          ->excludes(out);
  command->add_option("--port", options->port, "Of --serve; 0: any that is free")->needs(serve_flag);
  command->callback([options, &exit_code] {
    exit_code = 0;
    if (options->json)
      print_json(*options);
    else if (options->serve)
      exit_code = serve(*options);
    else
      write(*options);
  });
}

}  // namespace hexad::cli
