#include "core/algorithm/run/train_run.hpp"

#include <filesystem>
#include <functional>

#include "core/algorithm/grpo/grpo.hpp"
#include "core/algorithm/run/identity.hpp"
#include "core/algorithm/run/model_directory.hpp"
#include "core/algorithm/run/saver.hpp"
#include "core/algorithm/run/tracking.hpp"
#include "core/algorithm/supervised/supervised.hpp"
#include "core/checkpoint/store.hpp"
#include "core/cluster/process/start_workers.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/yaml/file.hpp"
#include "lib/yaml/secret.hpp"

namespace hexad::algorithm {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::vector<std::string> environment_names_of(const config::RunConfig& run) {
  std::vector<std::string> names;
  for (const auto* list : {&run.data.train, &run.data.validation}) {
    for (const config::DatasetConfig& dataset : *list) names.push_back(dataset.env_name);
  }
  return names;
}

// What the resolved configuration says otherwise than the checkpoint's, a line each: it goes on all the same.
void tell_changes(const Training& run, const fs::path& checkpoint) {
  constexpr size_t kShown = 20;
  const fs::path saved = checkpoint / "config.yaml";
  if (!fs::exists(saved)) return;
  const std::vector<std::string> changes = checkpoint::differences(
      yaml::read_file(saved).to_json(), yaml::read_text(run.resolved_config, "config.yaml").to_json());
  for (size_t i = 0; i < std::min(changes.size(), kShown); ++i) run.console.line("changed since: " + changes[i]);
  if (changes.size() > kShown)
    run.console.line(fmt::format("changed since: {} more keys, see {}", changes.size() - kShown, saved.string()));
}

// One that was saved without checksums may be damaged in ways that its backend alone finds.
void load(const Training& run, const checkpoint::Store::Found& found, const std::string& optimizer) {
  const fs::path weights = found.directory / "policy/weights";
  try {
    run.policy.load(weights, optimizer);
  } catch (const Error& error) {
    if (checkpoint::has_checksums(found.info.files)) throw;
    const auto steps = checkpoint::list_steps(found.directory.parent_path());
    throw Error(error.kind(),
                fmt::format("{}\nThe checkpoint {} has no checksums. If it is damaged, {}", error.what(),
                            found.directory.string(),
                            steps.size() < 2 ? "restore it from a copy, or start afresh (--fresh keeps it in run_<n>)"
                                             : fmt::format("move it away: the one before it is {}",
                                                           steps[steps.size() - 2].second.string())));
  }
}

// Weights, optimizer and position of the newest intact checkpoint; a reference policy stays the model that the run
// began with.
template <typename Data>
void resume(Training& run, Data& data, bool is_fresh) {
  const auto aside = run.checkpoints && is_fresh ? run.checkpoints->set_aside() : std::nullopt;
  if (aside) run.interruption.has_filled(*aside);
  if (aside) run.console.line(fmt::format("starts at step 0; earlier checkpoints are in {} now", aside->string()));
  const std::function<void(const std::string&)> tell = [&](const std::string& line) { run.console.line(line); };
  const auto found = run.checkpoints ? run.checkpoints->newest_intact(tell) : std::nullopt;
  if (!found) return;
  checkpoint::Store::require_same(*found, comparable(run.identity, found->info.identity));
  const fs::path directory = found->directory / "policy/optimizer";
  const bool optimizer = fs::exists(directory);
  const data::LoaderState position = position_of(*found);
  load(run, *found, optimizer ? directory.string() : "");
  run.progress = found->info;
  run.schedule.advance_to(found->info.total_steps);
  data.restore(position);
  run.console.line(fmt::format("resumed from {} (step {}){}", found->directory.string(), found->step,
                               optimizer ? "" : "; no optimizer state in it: the optimizer starts afresh"));
  if (!checkpoint::has_checksums(found->info.files))
    tell(
        "note: that checkpoint has no checksums (checkpointing.checksums is false, or an older version saved it), so "
        "that its files were not compared with what was saved");
  tell_changes(run, found->directory);
}

// One worker on a thread of this process.
cluster::Placement in_process(const config::RunConfig& run) {
  if (config::generation_ranks(run) > 0)
    fail(ErrorKind::config,
         "--in-process has one worker, and policy.generation.colocated.enabled is false: generation needs ranks of its "
         "own. Set it to true, or leave --in-process out");
  return cluster::colocated(1);
}

// A run that ends with an error leaves its report too: what it did until then is where the cause is looked for.
Ending train_and_report(Training& run, const TrainOptions& options, const std::function<Ending()>& train) {
  const auto report = [&](const char* status) {
    try {
      run.log.end_samples();
      if (options.report && run.log.steps() > 0) options.report(run.log.directory());
    } catch (const std::exception& error) {
      run.console.line(error.what());  // a page is no reason to lose what was trained
    }
    run.log.end_tracking(status);
  };
  Ending ending;
  try {
    ending = train();
    run.log.end_samples();
  } catch (...) {
    report(run.interruption.interrupted > 0 ? "interrupted" : "failed");
    throw;
  }
  report(ending == Ending::interrupted ? "interrupted" : "finished");
  return ending;
}

}  // namespace

data::LoaderState position_of(const checkpoint::Store::Found& found) {
  try {
    return found.info.loader.get<data::LoaderState>();
  } catch (const Error& error) {
    fail(ErrorKind::data, "checkpoint: {} is damaged: loader: {}", (found.directory / "training_info.json").string(),
         error.what());
  }
}

plugin::Options plugin_options(const yaml::Node& root) {
  const yaml::Node *section = root.find("plugins"), *limit = root.find("cluster.worker_timeout_s");
  plugin::Options options = plugin::options_from(section ? section->to_json() : Json::object());
  if (limit && limit->is_number()) options.call_limit_s = limit->as_double();
  return options;
}

plugin::Locate locator(const yaml::Node& root) {
  return [&root](std::string_view path) {
    const yaml::Node* node = root.find(path);
    return node ? node->location().text() : std::string();
  };
}

namespace {

// What a run of any algorithm has, in the order in which it is made.
struct TrainingSetup {
  TrainingSetup(const config::Resolved& resolved, const TrainOptions& options, Interruption& interruption);

  // Starts the workers with the configuration's backend and loss, and its generator if `generates`. `rows`: to train
  // and to validate on.
  void start(bool generates, int64_t rows_per_unit, int64_t rows, int64_t validation_rows);
  // Prints what a notice says, if it says anything.
  void note(const std::string& notice);
  // Of workers that are started.
  Training run(const Json& identity);

  const config::Resolved& resolved;
  const TrainOptions& options;
  Interruption& interruption;
  config::RunConfig config;
  std::string yaml;
  std::shared_ptr<const ModelOnDisk> model;
  Console nobody;
  Console& console = options.console ? *options.console : nobody;
  telemetry::RunLog log;
  std::optional<checkpoint::Store> checkpoints;
  cluster::Placement placement;
  std::optional<cluster::WorkerGroup> workers;
  std::optional<cluster::Policy> policy;
  std::unique_ptr<Schedule> schedule;
};

// The same path.
fs::path to_make(Interruption& interruption, const fs::path& path) {
  interruption.will_make(path);
  return path;
}

TrainingSetup::TrainingSetup(const config::Resolved& resolved, const TrainOptions& options, Interruption& interruption)
    : resolved(resolved),
      options(options),
      interruption(interruption),
      config(config::run_config(resolved)),
      yaml(yaml::without_secrets(resolved.root).to_yaml()),
      model(options.model ? options.model : std::make_shared<const ModelOnDisk>(read_model(config))),
      log(to_make(interruption, config.logger.log_dir), yaml, config.logger.tensorboard_enabled) {
  interruption.has_made(log.directory());
  for (const config::Problem& notice : resolved.notices) console.line(notice.text());
}

void TrainingSetup::start(bool generates, int64_t rows_per_unit, int64_t rows, int64_t validation_rows) {
  if (config.checkpointing.enabled) {
    to_make(interruption, fs::path(config.checkpointing.checkpoint_dir) / ".lock");
    checkpoints.emplace(config.checkpointing);
  }
  placement = options.spawner ? cluster::placement_of(config) : in_process(config);
  cluster::WorkerGroupOptions worker_options;
  worker_options.world_size = placement.world();
  worker_options.program = options.program;
  worker_options.log_dir = fs::absolute(log.directory()).string();
  worker_options.call_timeout_s = config.cluster.worker_timeout_s;
  worker_options.launch = options.launch;
  worker_options.meeting_dir = config.logger.log_dir;
  worker_options.interrupted = &interruption.interrupted;
  worker_options.has_trained = &interruption.has_trained;
  worker_options.has_unsaved = &interruption.has_unsaved;
  workers.emplace(options.spawner, worker_options);
  workers->on_progress([this](int rank, const cluster::protocol::Progress& event) { console.progress(rank, event); });
  const cluster::Roles roles{config.policy.backend, config.loss_fn.plugin,
                             generates ? config.policy.generation.plugin : ""};
  auto started = cluster::start_workers(*workers, placement, resolved.root, config, roles, model->directory,
                                        model->text.tokenizer_dir);
  console.started({config, resolved.root, placement, started, log.directory().string(), rows, validation_rows});
  started.resize(static_cast<size_t>(placement.trainers.count));
  policy.emplace(*workers, config.policy, started, rows_per_unit);
  schedule = make_schedule(config);
}

void TrainingSetup::note(const std::string& notice) {
  if (!notice.empty()) console.line("note: " + notice);
}

Training TrainingSetup::run(const Json& identity) {
  return {config,
          yaml,
          identity,
          *policy,
          model->text,
          *schedule,
          checkpoints ? &*checkpoints : nullptr,
          log,
          console,
          interruption,
          options.since_launch,
          placement,
          {}};
}

// Resumes, trains, reports and ends. `data`: prompts or examples, which a checkpoint positions.
template <typename Data>
TrainOutcome finish(TrainingSetup& setup, Training& run, Data& data, const std::function<Ending()>& train) {
  resume(run, data, !setup.options.resumes.value_or(run.config.checkpointing.resume_if_exists));
  start_trackers(run, setup.options.program, setup.resolved.root);
  const int64_t resumed_at = run.progress.total_steps;
  const Ending ending = train_and_report(run, setup.options, train);
  setup.workers->stop();
  if (run.progress.total_steps == resumed_at && ending != Ending::interrupted) {
    setup.console.line(fmt::format(
        "nothing was trained: the run had already reached step {0}. Raise {1}.max_num_steps or "
        "{1}.max_num_epochs, or start another run: with --fresh, or with a checkpointing.checkpoint_dir of its own",
        resumed_at, name_of(run.config.algorithm)));
  }
  return {.run_dir = run.log.directory().string(),
          .steps = run.progress.total_steps,
          .saved = setup.checkpoints.has_value() && run.progress.total_steps > 0};
}

bool validates(int64_t period, bool at_start, bool at_end) { return period > 0 || at_start || at_end; }

// What validation makes of its prompts.
void note_validation(TrainingSetup& setup, const rollout::Prompts& prompts) {
  const config::GrpoConfig& grpo = setup.config.grpo;
  const data::Contents& validated = prompts.validation().contents;
  if (!validates(grpo.val_period, grpo.val_at_start, grpo.val_at_end) || validated.size == 0) return;
  for (const std::string& line : prompts.notes()) setup.note(line);
  setup.note(data::too_long_notice(validated, "validation prompts", rollout::input_limit(setup.config) - 1, true));
  if (const int64_t most = grpo.max_val_samples.value_or(validated.size); most < validated.size)
    setup.note(fmt::format("validation takes the first {} of {} prompts (grpo.max_val_samples)", most, validated.size));
}

void note_validation(TrainingSetup& setup, const Examples& examples, const std::string& what) {
  const config::SupervisedConfig& config = setup.config.supervised;
  const data::Contents& validated = examples.validated();
  if (!validates(config.val_period, config.val_at_start, config.val_at_end) || validated.size == 0) return;
  for (const std::string& line : examples.notes()) setup.note(line);
  setup.note(data::too_long_notice(validated, "validation " + what, rollout::input_limit(setup.config)));
  setup.note(data::untrained_notice(validated, "validation " + what));
}

TrainOutcome train_on_rollouts(TrainingSetup& setup) {
  const config::RunConfig& config = setup.config;
  const rollout::ModelText& text = setup.model->text;
  rollout::Prompts prompts(config, text.tools());
  plugin::Registry plugins(plugin_options(setup.resolved.root), /*runtime=*/nullptr);
  const rollout::Environments environments = rollout::make_environments(
      config.env, environment_names_of(config),
      {plugins, locator(setup.resolved.root), &setup.interruption.interrupted,
       std::min(config.grpo.max_num_steps, config.grpo.max_num_epochs * prompts.steps_per_epoch())});
  for (const std::string& line : prompts.formats()) setup.console.line(line);
  setup.note(data::too_long_notice(prompts.train(), "prompts", rollout::input_limit(config) - 1));  // room for a token
  note_validation(setup, prompts);
  for (const std::string& line : rollout::missing_answers(prompts.answers(), environments)) setup.note(line);
  const Json identity = identity_of(config, setup.model->directory, prompts.train());
  setup.start(/*generates=*/true, /*rows_per_unit=*/1, prompts.train().size,
              prompts.validation().contents.size);
  rollout::Generation generation(*setup.workers, setup.placement);
  Grpo run{setup.run(identity), generation, prompts, environments, rollout::sampling_from(config.policy, text.eos_ids)};
  if (setup.policy->loss_needs().reference_logprobs || config.loss_fn.use_kl_in_reward)
    setup.policy->keep(cluster::Weights::reference);
  return finish(setup, run, prompts, [&] {
    return config.grpo.async_grpo.enabled ? train_grpo_async(run, *setup.workers) : train_grpo(run);
  });
}

TrainOutcome train_on_examples(TrainingSetup& setup) {
  const config::Algorithm algorithm = setup.config.algorithm;
  Examples examples(setup.config, setup.model->text);
  const std::string what = has_pairs(algorithm) ? "pairs" : "conversations";
  for (const std::string& line : examples.formats()) setup.console.line(line);
  setup.note(data::too_long_notice(examples.train(), what, rollout::input_limit(setup.config)));
  setup.note(data::untrained_notice(examples.train(), what));
  setup.note(data::hidden_reasoning_notice(examples.train(), what));
  note_validation(setup, examples, what);
  const Json identity = identity_of(setup.config, setup.model->directory, examples.train());
  setup.start(/*generates=*/false, has_pairs(algorithm) ? 2 : 1, examples.train().size, examples.validated().size);
  Supervised run{setup.run(identity), examples};
  if (setup.policy->loss_needs().reference_logprobs) setup.policy->keep(cluster::Weights::reference);
  return finish(setup, run, examples, [&] { return train_supervised(run); });
}

}  // namespace

TrainOutcome train(const config::Resolved& resolved, const TrainOptions& options, Interruption& interruption) {
  interruption.begin();
  TrainOutcome outcome;
  std::optional<TrainingSetup> setup;
  try {
    setup.emplace(resolved, options, interruption);
    outcome =
        setup->config.algorithm == config::Algorithm::grpo ? train_on_rollouts(*setup) : train_on_examples(*setup);
  } catch (const Interrupted&) {
    if (interruption.has_trained) throw;  // it would have been saved
  } catch (const Error& error) {
    // A start that is refused has said all it has to say. Logs of workers and plugins that failed stay.
    const bool stays = error.exit_code() != 2 || (setup && setup->log.steps() > 0);
    setup.reset();
    if (!stays) interruption.take_back();
    throw;
  }
  setup.reset();
  outcome.interrupted = interruption.interrupted > 0;
  outcome.is_taken_back = outcome.interrupted && !interruption.has_trained;
  if (outcome.is_taken_back) interruption.take_back();
  return outcome;
}

}  // namespace hexad::algorithm
