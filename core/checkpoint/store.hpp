// Checkpoints of a run: step_N directories written beside and renamed, retention, and where to resume (NeMo-RL's
// layout).
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/checkpoint/checksums.hpp"
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
  std::string run_id;                     // by which trackers know the run; empty: none has been told of it
  std::map<std::string, double> metrics;  // "val:accuracy", "train:reward" ...: what retention ranks by
  FileSums files;                         // of this checkpoint, but for this one; empty: an older version made it
};

// checkpoint_dir/
//   latest_checkpoint_status.json, step_N/{training_info.json, config.yaml, policy/{weights,optimizer,tokenizer}/}
//   run_N/: what was set aside, alike
// A step is written as tmp_step_N and renamed when complete; an existing step_N becomes old_step_N until the new one is
// in place. Whatever moment the process dies at, the newest complete step_N is whole. What a disk does to it later is
// found by its checksums; it becomes damaged_step_N then, and nothing removes it. One thread, one process a directory.
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
  // Moves the checkpoints into run_<n>, n the next free number, and returns that folder; nothing where there are none.
  // A process that dies meanwhile leaves the newest where it was.
  std::optional<std::filesystem::path> set_aside();
  // The newest one whose files are what was saved (inspect). Newer ones become damaged_step_N, and `tell` gets a line
  // of what is wrong with each. Throws Error(data) if there are some, and none of them is intact, or if the newest is
  // not and checkpointing.resume_from_older is false; nothing is renamed then.
  std::optional<Found> newest_intact(const std::function<void(const std::string&)>& tell);
  // Which one that is, and nothing is renamed: `damaged` gets those that are newer. `quick`: of files the sizes alone
  // are compared, so that a checkpoint may be taken for intact that is not.
  static std::optional<Found> find_intact(const config::CheckpointingConfig& config, bool quick,
                                          std::vector<std::pair<std::filesystem::path, std::string>>& damaged);
  // Throws Error(data) listing every difference unless the checkpoint was made by the same model and data.
  static void require_same(const Found& found, const nlohmann::ordered_json& identity);

  // tmp_step_N with policy/{weights,optimizer,tokenizer}, empty, to be filled by the workers.
  std::filesystem::path begin(int64_t step);
  // Removes it again: it cannot be finished.
  void abandon(int64_t step);
  // Writes training_info.json and config.yaml, with the checksums of both where info.files has some, syncs, renames,
  // updates latest_checkpoint_status.json, deletes what retention does not keep: the latest, the best keep_top_k by
  // metric_name among steps divisible by save_period (ties: the newer; a missing metric is the worst; no metric_name:
  // the newest), and the newest ft_keep_latest_k.
  void commit(int64_t step, const TrainingInfo& info, const std::string& resolved_config);

 private:
  double score_of(const std::filesystem::path& directory) const;
  void retain() const;

  config::CheckpointingConfig config_;
  std::filesystem::path root_;
  std::optional<DirectoryLock> lock_;
};

// What the training_info.json of a step_N directory says. Throws Error(data) if it cannot be read, or is damaged.
TrainingInfo read_info(const std::filesystem::path& directory);

// A step_N directory as it is now.
struct Inspection {
  TrainingInfo info;
  std::vector<std::string> damage;  // what is not as it was saved, a line each; empty: intact, as far as can be told
};
// Reads all of its files; `quick`: compares their sizes alone.
Inspection inspect(const std::filesystem::path& directory, bool quick = false);
// The step_N directories in a directory of checkpoints, with their steps, in order; all: also those that lack their
// training_info.json. Throws Error(data) if they cannot be listed.
std::vector<std::pair<int64_t, std::filesystem::path>> list_steps(const std::filesystem::path& directory,
                                                                  bool all = false);
// Throws Error(data) if the model directory is one of a checkpoint (step_N, or its policy/weights), and a file is not
// what was saved; those of the optimizer do not matter.
void require_intact_model(const std::filesystem::path& model_dir);

// True for a step_N directory of a run's checkpoints.
bool is_checkpoint(const std::filesystem::path& directory);
// The one of the highest step in a directory of checkpoints.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& directory);

// In what a checkpoint and a run that would go on from it differ: "a.b: saved 1, now 2" for each, by its path of keys;
// a key that one side lacks is null there.
std::vector<std::string> differences(const nlohmann::ordered_json& saved, const nlohmann::ordered_json& now);

}  // namespace hexad::checkpoint
