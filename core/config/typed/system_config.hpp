// The typed view of the blocks around the algorithm: checkpointing, logger, cluster.
// Field names are the keys; docs/config.md says what each means.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace hexad::config {

// `hexad eval`.
struct EvalConfig {
  std::string metric = "pass@k";
  int64_t num_tests_per_prompt = 1;
  int64_t k_value = 1;
  int64_t seed = 42;
  int64_t num_prompts_per_step = -1;  // -1: all
  std::optional<std::string> save_path;
};

struct CheckpointingConfig {
  bool enabled = true;
  bool resume_if_exists = true;  // false: what is there moves away, and the run starts at step 0
  std::string checkpoint_dir = "results/grpo";
  bool is_async = true;                                     // what is written reaches the disk while training goes on
  std::optional<std::string> metric_name = "val:accuracy";  // "val:x" or "train:x"; absent: newest are kept
  bool higher_is_better = true;
  std::optional<int64_t> keep_top_k = 3;  // absent: all
  int64_t save_period = 10;
  std::optional<double> checkpoint_must_save_by_s;  // from "DD:HH:MM:SS"
  bool save_optimizer = true;
  bool checksums = true;          // of files, taken when they are written and compared when a run resumes
  bool resume_from_older = true;  // where the newest is damaged
  std::optional<int64_t> ft_keep_latest_k;
  std::optional<int64_t> ft_save_period;
};

// A program that is told of the run.
struct TrackerConfig {
  std::string name;                   // "wandb"
  std::vector<std::string> command;   // the program first
  std::string script;                 // file that ships with the engine, and follows the command; empty: none
  std::vector<std::string> pass_env;  // variables that it is given though they look like secrets
  nlohmann::ordered_json settings;    // a map
};

struct LoggerConfig {
  std::string log_dir = "logs";
  int64_t num_val_samples_to_print = 0;
  std::optional<int64_t> samples_per_step;  // absent: all
  bool tensorboard_enabled = false;
  std::vector<double> profile_steps;
  std::vector<TrackerConfig> trackers;
};

struct ClusterConfig {
  int64_t gpus_per_node = 1;
  int64_t num_nodes = 1;
  int64_t master_port_range_low = 1400;
  int64_t master_port_range_high = 1999;
  std::string device = "auto";
  double worker_timeout_s = 600;
  int64_t max_restarts = 0;
};

}  // namespace hexad::config
