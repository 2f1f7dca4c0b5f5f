// hexad worker: one rank, started by the controller, which writes where to connect on its standard input.
#include <unistd.h>

#include <iterator>

#include "app/commands.hpp"
#include "core/cluster/worker/worker.hpp"

namespace hexad::cli {
namespace {

std::string read_bootstrap() {
  std::string text;
  char buffer[4096];
  for (ssize_t size = 0; (size = ::read(STDIN_FILENO, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(size));
  return text;
}

}  // namespace

void add_worker(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("worker", "One rank of a run (started by `hexad train`)");
  command->group("");
  command->callback([&exit_code] {
    if (::isatty(STDIN_FILENO)) cluster::bootstrap_from_text("");
    cluster::run_worker(cluster::bootstrap_from_text(read_bootstrap()), /*own_process=*/true);
    exit_code = 0;
  });
}

}  // namespace hexad::cli
