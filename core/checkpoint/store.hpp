// Checkpoints of a run: step_N directories written beside and renamed, retention, and where to resume (NeMo-RL's
// layout).
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/checkpoint/directory_lock.hpp"
#include "core/config/typed/system_config.hpp"

namespace hexad::checkpoint {

// training_info.json: where the run stands, and what it is a run of.
struct TrainingInfo {
  int64_t consumed_samples = 0;  // prompts
  int64_t current_step = 0;      // of the current epoch
  int64_t current_epoch = 0;
  int64_t total_steps = 0;
  int64_t total_valid_tokens = 0;
  int64_t weight_version = 0;
  nlohmann::ordered_json loader;          // data::LoaderState
  nlohmann::ordered_json identity;        // model, dataset ...: what must not change between save and resume
  std::map<std::string, double> metrics;  // "val:accuracy", "train:reward" ...: what retention ranks by
};

// checkpoint_dir/
//   latest_checkpoint_status.json, step_N/{training_info.json, config.yaml, policy/{weights,optimizer,tokenizer}/}
// A step is written as tmp_step_N and renamed when complete; an existing step_N becomes old_step_N until the new one is
// in place. Whatever moment the process dies at, the newest complete step_N is whole. One thread, one process a
// directory.
class Store {
 public:
  // Removes what an earlier process left half-written. Throws Error(data) if the directory cannot be made, or another
  // process has it.
  explicit Store(const config::CheckpointingConfig& config);

  struct Found {
    int64_t step = 0;
    std::filesystem::path directory;
    TrainingInfo info;
  };
  // The newest complete checkpoint. Throws Error(data) if its training_info.json cannot be read.
  std::optional<Found> latest() const;
  // Throws Error(data) listing every difference unless the checkpoint was made by the same model and data.
  static void require_same(const Found& found, const nlohmann::ordered_json& identity);

  // tmp_step_N with policy/{weights,optimizer,tokenizer}, empty, to be filled by the workers.
  std::filesystem::path begin(int64_t step);
  // Removes it again: it cannot be finished.
  void abandon(int64_t step);
  // Writes training_info.json and config.yaml, syncs, renames, updates latest_checkpoint_status.json, deletes what
  // retention does not keep: the latest, the best keep_top_k by metric_name among steps divisible by save_period (ties:
  // the newer; a missing metric is the worst; no metric_name: the newest), and the newest ft_keep_latest_k.
  void commit(int64_t step, const TrainingInfo& info, const std::string& resolved_config);

 private:
  void retain() const;

  config::CheckpointingConfig config_;
  std::filesystem::path root_;
  std::optional<DirectoryLock> lock_;
};

// True for a step_N directory of a run's checkpoints.
bool is_checkpoint(const std::filesystem::path& directory);
// The one of the highest step in a directory of checkpoints.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& directory);

// In what a checkpoint and a run that would go on from it differ: "a.b: saved 1, now 2" for each, by its path of keys;
// a key that one side lacks is null there.
std::vector<std::string> differences(const nlohmann::ordered_json& saved, const nlohmann::ordered_json& now);

}  // namespace hexad::checkpoint
