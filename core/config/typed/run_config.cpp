#include "core/config/typed/run_config.hpp"

#include "core/config/typed/run_config_read.hpp"

namespace hexad::config {
namespace {

CompatConfig read_compat(const Reader& r) {
  CompatConfig c;
  r.read("dynamic_sampling_by_sample", c.dynamic_sampling_by_sample);
  r.read("filtered_samples_vote", c.filtered_samples_vote);
  return c;
}

EvalConfig read_eval(const Reader& r) {
  EvalConfig c;
  r.read("metric", c.metric);
  r.read("num_tests_per_prompt", c.num_tests_per_prompt);
  r.read("k_value", c.k_value);
  r.read("seed", c.seed);
  r.read("num_prompts_per_step", c.num_prompts_per_step);
  r.read("save_path", c.save_path);
  return c;
}

CheckpointingConfig read_checkpointing(const Reader& r) {
  CheckpointingConfig c;
  r.read("enabled", c.enabled);
  r.read("checkpoint_dir", c.checkpoint_dir);
  r.read("is_async", c.is_async);
  r.read("metric_name", c.metric_name);
  if (c.metric_name) c.metric_name = ranked_metric(*c.metric_name);
  r.read("higher_is_better", c.higher_is_better);
  r.read("keep_top_k", c.keep_top_k);
  r.read("save_period", c.save_period);
  if (const auto limit = r.optional_text("checkpoint_must_save_by"))
    c.checkpoint_must_save_by_s = duration_seconds(*limit);
  r.read("resume_if_exists", c.resume_if_exists);
  r.read("save_optimizer", c.save_optimizer);
  r.read("checksums", c.checksums);
  r.read("resume_from_older", c.resume_from_older);
  r.read("ft_keep_latest_k", c.ft_keep_latest_k);
  r.read("ft_save_period", c.ft_save_period);
  return c;
}

// Those that ship with the engine, each with the variables that its service knows its user by; then the user's own.
std::vector<TrackerConfig> read_trackers(const Reader& r) {
  static const std::pair<std::string, std::vector<std::string>> kShipped[] = {
      {"wandb", {"WANDB_API_KEY"}},
      {"mlflow", {"MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_PASSWORD", "DATABRICKS_TOKEN"}},
      {"swanlab", {"SWANLAB_API_KEY"}},
      {"trackio", {"HF_TOKEN", "TRACKIO_WRITE_TOKEN"}},
  };
  std::vector<TrackerConfig> trackers;
  std::string python = "python3";
  std::vector<std::string> passed;
  r.read("tracker_python", python);
  r.read("tracker_pass_env", passed);
  const auto add = [&](TrackerConfig tracker) {
    tracker.pass_env.insert(tracker.pass_env.end(), passed.begin(), passed.end());
    if (!tracker.settings.is_object()) tracker.settings = nlohmann::ordered_json::object();
    trackers.push_back(std::move(tracker));
  };
  for (const auto& [name, keys] : kShipped) {
    bool enabled = false;
    r.read(name + "_enabled", enabled);
    TrackerConfig tracker{name, {python}, "to_" + name + ".py", keys, {}};
    r.read(name, tracker.settings);
    if (enabled) add(std::move(tracker));
  }
  const yaml::Node* own = r.find("trackers");
  const size_t count = !own ? 0 : own->is_list() ? own->items().size() : 1;
  for (size_t i = 0; i < count; ++i) {
    const std::string at = own->is_list() ? fmt::format("trackers.{}.", i) : "trackers.";
    TrackerConfig tracker;
    r.read(at + "name", tracker.name);
    const yaml::Node* command = r.find(at + "command");
    if (command && command->is_string())
      tracker.command = {"/bin/sh", "-c", command->as_string()};
    else
      r.read(at + "command", tracker.command);
    r.read(at + "settings", tracker.settings);
    add(std::move(tracker));
  }
  return trackers;
}

LoggerConfig read_logger(const Reader& r) {
  LoggerConfig c;
  r.read("log_dir", c.log_dir);
  r.read("num_val_samples_to_print", c.num_val_samples_to_print);
  r.read("samples_per_step", c.samples_per_step);
  r.read("tensorboard_enabled", c.tensorboard_enabled);
  r.read("profile_steps", c.profile_steps);
  c.trackers = read_trackers(r);
  return c;
}

ClusterConfig read_cluster(const Reader& r) {
  ClusterConfig c;
  r.read("gpus_per_node", c.gpus_per_node);
  r.read("num_nodes", c.num_nodes);
  r.read("master_port_range_low", c.master_port_range_low);
  r.read("master_port_range_high", c.master_port_range_high);
  r.read("device", c.device);
  r.read("worker_timeout_s", c.worker_timeout_s);
  r.read("max_restarts", c.max_restarts);
  return c;
}

EnvConfig read_env(const yaml::Node& root) {
  EnvConfig result;
  const yaml::Node* env = root.child("env");
  if (!env || !env->is_map()) return result;
  for (const auto& [name, arguments] : env->entries()) {
    if (arguments.is_map() || arguments.is_null()) {
      result[name] = arguments.is_null() ? nlohmann::ordered_json::object() : arguments.to_json();
    }
  }
  return result;
}

}  // namespace

int64_t generation_ranks(const RunConfig& run) {
  const ColocatedConfig& colocated = run.policy.generation.colocated;
  if (colocated.enabled || run.algorithm != Algorithm::grpo) return 0;
  if (run.cluster.num_nodes == 1) return colocated.gpus_per_node.value_or(0);
  return colocated.num_nodes.value_or(0) * run.cluster.gpus_per_node;
}

int64_t max_num_steps(const RunConfig& run) {
  return run.algorithm == Algorithm::grpo ? run.grpo.max_num_steps : run.supervised.max_num_steps;
}

RunConfig run_config(const yaml::Node& root, const RunFacts& facts) {
  RunConfig run;
  run.algorithm = algorithm_of(root);
  if (run.algorithm == Algorithm::grpo)
    run.grpo = read_grpo(root);
  else
    run.supervised = read_supervised(root);
  run.reward_penalties = read_penalties(root);
  run.compat = read_compat(Reader(root, "compat"));
  run.loss_fn = read_loss(root);
  run.facts = facts;
  run.policy = read_policy(root, facts);
  run.data = read_data(root);
  run.env = read_env(root);
  run.eval = read_eval(Reader(root, "eval"));
  run.checkpointing = read_checkpointing(Reader(root, "checkpointing"));
  run.logger = read_logger(Reader(root, "logger"));
  run.cluster = read_cluster(Reader(root, "cluster"));
  return run;
}

}  // namespace hexad::config
