// What a run leaves for people and programs: metrics.jsonl, TensorBoard events, the resolved config, rollout samples.
#pragma once
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "core/telemetry/tensorboard.hpp"

namespace hexad::telemetry {

using Metrics = std::map<std::string, double>;

// Owns the directory of one run (logger.log_dir/exp_NNN, the next free number). One thread.
class RunLog {
 public:
  // Makes the directory and writes config.yaml; with `tensorboard`, every step also goes into an event file. Throws
  // Error(data) if it cannot be written.
  RunLog(const std::filesystem::path& log_dir, const std::string& resolved_config, bool tensorboard = false);

  const std::filesystem::path& directory() const { return directory_; }

  // Adds metrics of the running step under "prefix/name" ("train", "validation", "timing/train", "performance").
  void add(const std::string& prefix, const Metrics& metrics);
  // Writes the step's object {"step": N, "time": unix seconds, "train/reward": ...} as one line of metrics.jsonl and
  // forgets it. Not-finite numbers become null.
  void end_step(int64_t step);
  // Lines written so far.
  int64_t steps() const { return steps_; }

  // One line of train_data_step<N>.jsonl or val_data_step<N>.jsonl a sample (NeMo-RL's names: content, rewards,
  // input_lengths, token_ids, ...).
  void samples(const std::string& name, int64_t step, const std::vector<nlohmann::ordered_json>& lines);

 private:
  std::filesystem::path directory_;
  std::ofstream metrics_;
  std::optional<TensorBoardFile> tensorboard_;
  int64_t steps_ = 0;
  nlohmann::ordered_json step_ = nlohmann::ordered_json::object();
};

}  // namespace hexad::telemetry
