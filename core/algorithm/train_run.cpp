#include "core/algorithm/train_run.hpp"

#include <filesystem>
#include <functional>

#include "core/algorithm/grpo.hpp"
#include "core/algorithm/grpo_async.hpp"
#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/cluster/start_workers.hpp"
#include "core/telemetry/report.hpp"

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

Json plugins_section(const config::Node& root) {
  return root.find("plugins") ? root.at("plugins").to_json() : Json::object();
}

// What must be the same for a checkpoint to go on: another model or other data is another run.
Json identity_of(const config::RunConfig& run, const std::string& model_dir, const rollout::Prompts& prompts) {
  const auto model = read_json<Json>(fs::path(model_dir) / "config.json");
  Json identity = {{"model", Json::object()}, {"data", Json::array()}, {"train_prompts", prompts.train_size()}};
  for (const char* key : {"model_type", "hidden_size", "num_hidden_layers", "num_attention_heads",
                          "num_key_value_heads", "vocab_size", "intermediate_size"}) {
    if (model.contains(key)) identity["model"][key] = model.at(key);
  }
  for (const config::DatasetConfig& dataset : run.data.train) identity["data"].push_back(dataset.dataset_name);
  return identity;
}

// Weights, optimizer and position of the newest checkpoint; a reference policy stays the model that the run began with.
void resume(Grpo& run) {
  const auto found = run.checkpoints ? run.checkpoints->latest() : std::nullopt;
  if (!found) return;
  checkpoint::Store::require_same(*found, run.identity);
  const fs::path policy = found->directory / "policy";
  const bool optimizer = fs::exists(policy / "optimizer");
  run.policy.load(policy / "weights", optimizer ? (policy / "optimizer").string() : "");
  run.progress = found->info;
  run.schedule.advance_to(found->info.total_steps);
  run.prompts.restore(found->info.loader.get<data::LoaderState>());
  run.console.line(fmt::format("resumed from {} (step {}){}", found->directory.string(), found->step,
                               optimizer ? "" : "; no optimizer state in it: the optimizer starts afresh"));
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
Ending train_and_report(Grpo& run, const std::function<Ending()>& train) {
  const auto report = [&] {
    if (run.log.steps() > 0) telemetry::write_report(run.log.directory());
  };
  Ending ending;
  try {
    ending = train();
  } catch (...) {
    try {
      report();
    } catch (const Error& error) {
      run.console.line(error.what());
    }
    throw;
  }
  report();
  return ending;
}

}  // namespace

std::string model_directory(const std::string& model_name) {
  const fs::path path(model_name);
  if (fs::exists(path / "config.json")) return fs::canonical(path).string();
  if (path.extension() == ".gguf" && fs::exists(path)) {
    fail(ErrorKind::config, "policy.model_name: {} is a GGUF file. Convert it once: hexad convert {} <directory>",
         model_name, model_name);
  }
  if (fs::is_directory(path)) {
    fail(ErrorKind::config,
         "policy.model_name: {} has no config.json. Wanted: a Hugging Face model directory (config.json, "
         "tokenizer.json, *.safetensors)",
         model_name);
  }
  fail(ErrorKind::config,
       "policy.model_name: no directory '{}'. Hexad does not download models: give the path of a Hugging Face model "
       "directory "
       "(hf download {} --local-dir <directory>)",
       model_name, model_name);
}

TrainOutcome train(const config::Resolved& resolved, const TrainOptions& options, const std::atomic<int>& interrupted) {
  const config::RunConfig run = config::run_config(resolved.root);
  const std::string yaml = resolved.root.to_yaml();
  const std::string model_dir = model_directory(run.policy.model_name);
  telemetry::Console console;
  telemetry::RunLog log(run.logger.log_dir, yaml, run.logger.tensorboard_enabled);
  for (const config::Problem& notice : resolved.notices) console.line(notice.text());

  const rollout::ModelText text = rollout::load_model_text(model_dir, run.policy.tokenizer);
  rollout::Prompts prompts(run, text.tools());
  plugin::Registry plugins(plugin::options_from(plugins_section(resolved.root)), /*runtime=*/nullptr);
  const auto locate = [&](std::string_view path) {
    const config::Node* node = resolved.root.find(path);
    return node ? node->location().text() : std::string();
  };
  const rollout::Environments environments =
      rollout::make_environments(run.env, environment_names_of(run), plugins, locate);
  const Json identity = identity_of(run, model_dir, prompts);
  std::optional<checkpoint::Store> checkpoints;
  if (run.checkpointing.enabled) checkpoints.emplace(run.checkpointing);

  const cluster::Placement placement = options.spawner ? cluster::placement_of(run) : in_process(run);
  cluster::WorkerGroupOptions worker_options;
  worker_options.world_size = placement.world();
  worker_options.program = options.program;
  worker_options.log_dir = fs::absolute(log.directory()).string();
  worker_options.call_timeout_s = run.cluster.worker_timeout_s;
  worker_options.launch = options.launch;
  worker_options.meeting_dir = run.logger.log_dir;
  cluster::WorkerGroup workers(options.spawner, worker_options);
  workers.on_event([&](int, const Json& event) {
    console.progress(event.value("what", ""), event.value("done", int64_t{0}), event.value("total", int64_t{0}),
                     fmt::format("{} tokens", event.value("tokens", int64_t{0})));
  });
  std::vector<Json> started = cluster::start_workers(
      workers, placement, resolved.root, run, {run.policy.backend, run.loss_fn.plugin, run.policy.generation.plugin},
      model_dir, text.tokenizer_dir);
  for (const char* role : {"backend", "loss", "generator"}) {
    const bool generates = role == std::string("generator");
    const Json& plugin = started[static_cast<size_t>(generates ? placement.generators.first : 0)].at(role);
    console.line(fmt::format("{:9} {} {} ({}, sha256 {}...)", role, plugin.value("name", ""),
                             plugin.value("version", ""), plugin.value("path", ""),
                             plugin.value("sha256", "").substr(0, 8)));
  }

  if (placement.apart())
    console.line(fmt::format("ranks 0 to {} train, ranks {} to {} generate", placement.trainers.end() - 1,
                             placement.generators.first, placement.generators.end() - 1));
  started.resize(static_cast<size_t>(placement.trainers.count));
  cluster::Policy policy(workers, run.policy, started);
  rollout::Generation generation(workers, placement);
  const std::unique_ptr<Schedule> schedule = make_schedule(run);
  Grpo grpo{run,
            yaml,
            identity,
            policy,
            generation,
            prompts,
            environments,
            text,
            rollout::sampling_from(run.policy, text.eos_ids),
            *schedule,
            checkpoints ? &*checkpoints : nullptr,
            log,
            console,
            interrupted,
            placement,
            {}};
  if (policy.loss_needs().reference_logprobs || run.loss_fn.use_kl_in_reward) policy.keep(cluster::Weights::reference);
  resume(grpo);
  const int64_t resumed_at = grpo.progress.total_steps;
  const Ending ending = train_and_report(
      grpo, [&] { return run.grpo.async_grpo.enabled ? grpo_train_async(grpo, workers) : grpo_train(grpo); });
  workers.stop();
  if (grpo.progress.total_steps == resumed_at) {
    console.line(fmt::format(
        "nothing was trained: the run had already reached step {}. Raise grpo.max_num_steps or grpo.max_num_epochs, or "
        "start another run with a checkpointing.checkpoint_dir of its own",
        resumed_at));
  }
  return {log.directory().string(), grpo.progress.total_steps, ending == Ending::interrupted, checkpoints.has_value()};
}

}  // namespace hexad::algorithm
