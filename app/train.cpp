// hexad train CONFIG [key=value ...]
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <optional>

#include "app/check/check.hpp"
#include "app/commands.hpp"
#include "app/console/console.hpp"
#include "app/console/result.hpp"
#include "app/early_end.hpp"
#include "app/inference/libtorch.hpp"
#include "app/inference/open_files.hpp"
#include "app/plan/check.hpp"
#include "app/plan/memory_plan.hpp"
#include "app/presses.hpp"
#include "app/report/report.hpp"
#include "compat/compat.hpp"
#include "core/algorithm/run/train_run.hpp"
#include "core/checkpoint/store.hpp"
#include "core/cluster/process/launch.hpp"
#include "core/config/typed/run_config.hpp"
#include "lib/base/error.hpp"
#include "lib/base/said/printable.hpp"
#include "lib/process/start.hpp"
#include "lib/text/text_width.hpp"

namespace hexad::cli {
namespace {

constexpr int kInterrupted = 130;

algorithm::Interruption interruption;
std::atomic<bool> has_begun = false;  // until then there is nothing to end in order
Presses presses;

void say(const char* text) { [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text, std::strlen(text)); }

Presses::Meaning meaning_of(int signal) {
  // The terminal is gone, or the processor time over: the system says so more than once, and nobody has pressed
  // anything.
  if (signal == SIGHUP || signal == SIGXCPU)
    return interruption.interrupted > 0 ? Presses::Meaning::same : Presses::Meaning::first;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return presses.count(signal, int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000);
}

// The first Ctrl-C asks for an orderly end; the second ends at once (the workers end with us).
void on_interrupt(int signal) {
  const int before = errno;
  const Presses::Meaning meaning = meaning_of(signal);
  if (meaning == Presses::Meaning::first) {
    interruption.interrupted = 1;
    say(interruption.has_trained ? "\ninterrupted: saving what is trained; press again to stop at once\n"
                                 : "\ninterrupted before the first step: stopping\n");
  }
  if (meaning == Presses::Meaning::second || !has_begun) ::_exit(kInterrupted);
  errno = before;
}

void on_save_request(int signal) {
  const int before = errno;
  ++interruption.saves;
  say(signal == SIGUSR1 ? "\nSIGUSR1: saving after this step\n" : "\nSIGUSR2: saving after this step\n");
  errno = before;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

void handle_signals() {
  std::signal(SIGPIPE, SIG_IGN);  // a reader of the console that has gone is no reason to end
  std::signal(SIGXFSZ, SIG_IGN);  // whoever writes is told by the error
  handle(SIGINT, on_interrupt);
  handle(SIGTERM, on_interrupt);
  handle(SIGXCPU, on_interrupt);
  for (const int signal : {SIGUSR1, SIGUSR2}) handle(signal, on_save_request);
  struct sigaction hangup {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) handle(SIGHUP, on_interrupt);  // nohup
}

struct TrainArguments {
  std::string config;
  std::vector<std::string> overrides;
  bool in_process = false;
  bool json = false;
  bool fresh = false;
};

std::string ending_of(const algorithm::TrainOutcome& outcome) {
  if (outcome.is_taken_back) return "interrupted before the first step: nothing is left of this run";
  const std::filesystem::path run_dir = outcome.run_dir, report = run_dir / "report.html";
  return fmt::format("{} after step {}: {}",
                     !outcome.interrupted ? "done"
                     : outcome.saved      ? "interrupted and saved"
                                          : "interrupted, not saved (checkpointing.enabled is false)",
                     outcome.steps, (std::filesystem::exists(report) ? report : run_dir).string());
}

void print(const algorithm::TrainOutcome& outcome, bool json) {
  if (json) {
    nlohmann::ordered_json answer = {
        {"run_dir", outcome.run_dir}, {"steps", outcome.steps}, {"interrupted", outcome.interrupted}};
    if (outcome.is_taken_back) answer["run_dir"] = nullptr;
    std::cout << answer << std::endl;
    return;
  }
  try {
    std::cout << ending_of(outcome) << std::endl;
  } catch (const Error&) {  // what the run leaves is on the disk, and this line is for people
  }
}

// The newest checkpoint's weights, where they are a model that other programs open; else empty.
std::filesystem::path model_of(const config::CheckpointingConfig& checkpointing, int64_t step) {
  const std::filesystem::path weights =
      std::filesystem::path(checkpointing.checkpoint_dir) / fmt::format("step_{}/policy/weights", step);
  return std::filesystem::exists(weights / "config.json") ? weights : std::filesystem::path();
}

// What has changed, and what can be done with it: for people, who may have closed their terminal.
void tell_result(const algorithm::TrainOutcome& outcome, const config::RunConfig& run, const std::string& change,
                 const std::filesystem::path& program) {
  const console::Output output(stderr);
  const auto say_line = [&](const std::string& line, const std::vector<console::Mark>& marks = {}) {
    output.put(output.marked(output.is_terminal() ? text::wrapped(line, output.width()) : line, marks) + "\n");
  };
  if (!change.empty()) say_line(change, {{change, console::Style::bold}});
  const std::filesystem::path model = outcome.saved ? model_of(run.checkpointing, outcome.steps) : "";
  if (outcome.interrupted || model.empty()) return;
  const std::filesystem::path file = program.parent_path().parent_path() / "share/hexad/result.txt";
  try {
    const auto steps = console::next_steps(file, config::name_of(run.algorithm), model, outcome.run_dir);
    for (const std::string& line : console::lines_of(steps, output.is_terminal() ? output.width() : 0))
      output.put(line + "\n");
  } catch (const Error& error) {
    say_line(error.what());  // somebody has changed the file, and the run is as good as it was
  }
}

const char* where_from(const config::CheckpointingConfig& checkpointing) {
  const bool has_any = checkpointing.enabled && checkpoint::Store(checkpointing).latest();
  return has_any ? "the newest checkpoint" : "the beginning";
}

int run_with_restarts(const TrainArguments& arguments, const config::Resolved& resolved, const plan::Room& room,
                      algorithm::TrainOptions options) {
  // Ranks of a launcher are the launcher's to start again.
  const config::RunConfig run = config::run_config(resolved);
  const int64_t max_restarts = options.launch ? 0 : run.cluster.max_restarts;
  for (int64_t restart = 0;; ++restart) {
    try {
      std::string change;
      algorithm::TrainOutcome outcome;
      {
        console::RunConsole console({.program = options.program});
        options.console = &console;
        outcome = algorithm::train(resolved, options, interruption);
        change = console.change();
      }
      print(outcome, arguments.json);
      if (!arguments.json) tell_result(outcome, run, change, options.program);
      return outcome.interrupted ? kInterrupted : 0;
    } catch (const Error& error) {
      const std::string said = plan::with_advice(error.what(), resolved.root, room);
      const bool ends = error.kind() != ErrorKind::worker || restart >= max_restarts;
      if (ends && said != error.what()) throw Error(error.kind(), said);
      if (ends) throw;
      if (interruption.interrupted > 0) {
        std::cerr << "interrupted: not restarting\n";
        throw;
      }
      std::cerr << "hexad: " << indented(said) << '\n';  // before anything else that may fail
      std::cerr << "restarting from " << where_from(run.checkpointing) << " (" << restart + 1 << " of at most "
                << max_restarts << ")\n";
      options.resumes = true;
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

// A rank that is not the first: the first one's worker. It ends with the first one, not with a signal that all get;
// where it waits for the first one in vain, the signal ends it too.
int serve(const TrainArguments& arguments, const cluster::Launch& launch) {
  constexpr double kMeetS = 120;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGXCPU}) handle(signal, [](int) { interruption.interrupted = 1; });
  for (const int signal : {SIGUSR1, SIGUSR2}) std::signal(signal, SIG_IGN);
  const config::Resolved resolved = config::resolve(arguments.config, arguments.overrides, compat::all());
  check_world(resolved, launch);
  inference::require_open_files(launch.world);
  inference::require_libtorch();
  try {
    const cluster::Bootstrap bootstrap =
        cluster::meet(launch, config::run_config(resolved).logger.log_dir, kMeetS, &interruption.interrupted);
    process::ignore_job_signals();
    cluster::run_worker(bootstrap, /*own_process=*/true);
  } catch (const Interrupted&) {
    return kInterrupted;
  }
  return 0;
}

int run(const TrainArguments& arguments) {
  const Stopwatch since_launch;
  const std::optional<cluster::Launch> launch = arguments.in_process ? std::nullopt : cluster::launched();
  handle_signals();
  if (launch && launch->rank > 0) return serve(arguments, *launch);
  // Before anything that may start a thread.
  std::optional<cluster::Spawner> spawner;
  if (!arguments.in_process) spawner.emplace();
  inference::require_libtorch();
  const std::optional<bool> resumes = arguments.fresh ? std::optional(false) : std::nullopt;
  const Ready ready =
      require_ready(arguments.config, arguments.overrides,
                    {.launched = launch.has_value(), .in_process = arguments.in_process, .resumes = resumes});
  if (launch) check_world(ready.resolved, *launch);
  has_begun = true;
  const EarlyEnd early_end(interruption, [&] {
    print({.interrupted = true, .is_taken_back = true}, arguments.json);
    ::_exit(kInterrupted);
  });
  return run_with_restarts(arguments, ready.resolved, ready.room,
                           {.program = std::filesystem::read_symlink("/proc/self/exe"),
                            .spawner = spawner ? &*spawner : nullptr,
                            .launch = launch,
                            .report = report::write_report,
                            .resumes = resumes,
                            .model = ready.model,
                            .since_launch = since_launch});
}

}  // namespace

void add_train(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command = app.add_subcommand("train", "Run the algorithm that a config names");
  command->add_option("CONFIG", arguments->config, "YAML file")->required();
  command->add_option("OVERRIDES", arguments->overrides, "key=value, +key=value, ++key=value, ~key");
  command->add_flag("--in-process", arguments->in_process, "One worker on a thread of this process, for a debugger");
  command->add_flag("--fresh", arguments->fresh,
                    "Start at step 0, as checkpointing.resume_if_exists=false: older checkpoints move to run_<n>");
  command->add_flag("--json", arguments->json, "Print the outcome as one JSON object");
  command->callback([arguments, &exit_code] { exit_code = run(*arguments); });
}

}  // namespace hexad::cli
