// hexad train CONFIG [key=value ...]
#include <unistd.h>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <optional>

#include "app/commands.hpp"
#include "app/presses.hpp"
#include "app/report/report.hpp"
#include "compat/compat.hpp"
#include "core/algorithm/run/preflight.hpp"
#include "core/algorithm/run/train_run.hpp"
#include "core/checkpoint/store.hpp"
#include "core/cluster/process/launch.hpp"
#include "core/config/typed/run_config.hpp"
#include "lib/base/error.hpp"

namespace hexad::cli {
namespace {

std::atomic<int> interrupts{0};
Presses presses;

// The first Ctrl-C asks for an orderly end; the second ends at once (the workers end with us).
void on_interrupt(int signal) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const Presses::Meaning meaning = presses.count(signal, int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000);
  if (meaning == Presses::Meaning::second) ::_exit(130);
  if (meaning != Presses::Meaning::first) return;
  interrupts = 1;
  const char text[] = "\ninterrupted: finishing this step and saving; press again to stop at once\n";
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text, sizeof text - 1);
}

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool in_process = false;
  bool json = false;
};

const char* ending_of(const algorithm::TrainOutcome& outcome) {
  if (!outcome.interrupted) return "done";
  if (outcome.saved) return "interrupted and saved";
  return outcome.steps == 0 ? "interrupted" : "interrupted, not saved (checkpointing.enabled is false)";
}

const char* where_from(const config::CheckpointingConfig& checkpointing) {
  const bool has_any = checkpointing.enabled && checkpoint::Store(checkpointing).latest();
  return has_any ? "the newest checkpoint" : "the beginning";
}

int run_with_restarts(const TrainArguments& arguments, const config::Resolved& resolved,
                      const algorithm::TrainOptions& options) {
  // Ranks of a launcher are the launcher's to start again.
  const config::RunConfig run = config::run_config(resolved);
  const int64_t max_restarts = options.launch ? 0 : run.cluster.max_restarts;
  for (int64_t restart = 0;; ++restart) {
    try {
      const algorithm::TrainOutcome outcome = algorithm::train(resolved, options, interrupts);
      if (arguments.json) {
        std::cout << nlohmann::ordered_json{{"run_dir", outcome.run_dir},
                                            {"steps", outcome.steps},
                                            {"interrupted", outcome.interrupted}}
                  << '\n';
      } else {
        const std::filesystem::path run_dir = outcome.run_dir, report = run_dir / "report.html";
        std::cout << ending_of(outcome) << " after step " << outcome.steps << ": "
                  << (std::filesystem::exists(report) ? report : run_dir).string() << '\n';
      }
      return outcome.interrupted ? 130 : 0;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::worker || restart >= max_restarts) throw;
      if (interrupts > 0) {
        std::cerr << "interrupted: not restarting\n";
        throw;
      }
      std::cerr << "hexad: " << error.what() << '\n';  // before anything else that may fail
      std::cerr << "restarting from " << where_from(run.checkpointing) << " (" << restart + 1 << " of at most "
                << max_restarts << ")\n";
    }
  }
}

void check_world(const config::Resolved& resolved, const cluster::Launch& launch) {
  const config::ClusterConfig& cluster = config::run_config(resolved).cluster;
  const int64_t ranks = cluster.num_nodes * cluster.gpus_per_node;
  if (ranks == launch.world) return;
  fail(ErrorKind::config,
       "{} has started {} processes, and the config has {} rank{} (cluster.num_nodes {} x cluster.gpus_per_node {}): "
       "make them equal, or start one process a node's worth of ranks by itself",
       launch.launcher, launch.world, ranks, ranks == 1 ? "" : "s", cluster.num_nodes, cluster.gpus_per_node);
}

// A rank that is not the first: the first one's worker. It ends with the first one, not with a Ctrl-C that all get.
int serve(const TrainArguments& arguments, const cluster::Launch& launch) {
  constexpr double kMeetS = 120;
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  const config::Resolved resolved = config::resolve(arguments.config, arguments.overrides, compat::all());
  check_world(resolved, launch);
  cluster::run_worker(cluster::meet(launch, config::run_config(resolved).logger.log_dir, kMeetS),
                      /*own_process=*/true);
  return 0;
}

int run(const TrainArguments& arguments) {
  const std::optional<cluster::Launch> launch = arguments.in_process ? std::nullopt : cluster::launched();
  if (launch && launch->rank > 0) return serve(arguments, *launch);
  // Before anything that may start a thread.
  std::optional<cluster::Spawner> spawner;
  if (!arguments.in_process) spawner.emplace();
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  config::Resolved resolved = config::resolve(arguments.config, arguments.overrides, compat::all());
  if (launch) check_world(resolved, *launch);
  algorithm::require_ready(resolved, launch.has_value());
  return run_with_restarts(
      arguments, resolved,
      {std::filesystem::read_symlink("/proc/self/exe"), spawner ? &*spawner : nullptr, launch, report::write_report});
}

}  // namespace

void add_train(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command = app.add_subcommand("train", "Run the algorithm that a config names");
  command->add_option("CONFIG", arguments->config, "YAML file")->required();
  command->add_option("OVERRIDES", arguments->overrides, "key=value, +key=value, ++key=value, ~key");
  command->add_flag("--in-process", arguments->in_process, "One worker on a thread of this process, for a debugger");
  command->add_flag("--json", arguments->json, "Print the outcome as one JSON object");
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace hexad::cli
