// hexad report RUN_DIR
#include <iostream>

#include "core/cli/commands.hpp"
#include "core/telemetry/report.hpp"

namespace hexad::cli {

void add_report(CLI::App& app, int& exit_code) {
  auto run_dir = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("report", "Write report.html of a run");
  command->add_option("RUN_DIR", *run_dir, "Directory with metrics.jsonl")->required();
  command->callback([run_dir, &exit_code] {
    telemetry::write_report(*run_dir);
    std::cout << *run_dir << "/report.html\n";
    exit_code = 0;
  });
}

}  // namespace hexad::cli
