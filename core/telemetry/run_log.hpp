// What a run leaves for people and programs: metrics.jsonl, TensorBoard events, the resolved config, rollout samples.
#pragma once
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "core/telemetry/trackers.hpp"
#include "lib/base/file/append_file.hpp"
#include "lib/tensorboard/event_file.hpp"
#include "lib/zst/file_queue.hpp"

namespace hexad::telemetry {

using Metrics = std::map<std::string, double>;

// Throws what RunLog would throw because its directory cannot be made, as far as that can be known without making it.
void require_run_directory(const std::filesystem::path& log_dir);

// Owns the directory of one run (logger.log_dir/exp_NNN, the next free number). One thread.
//
// A disk that fills up later ends no run: lines of metrics wait in memory, and files of samples, the newest 64 MiB of
// them; TensorBoard's events are left out. A warning says so, and every step tries again, and the end of the run.
// Samples are written by a thread of their own: a step never waits for them.
class RunLog {
 public:
  // Makes the directory and writes config.yaml (0600); with `tensorboard`, every step also goes into an event file.
  // Throws Error(data) if it cannot be written, and leaves none.
  RunLog(const std::filesystem::path& log_dir, const std::string& resolved_config, bool tensorboard = false);
  // Tries once more to write what waits, and warns of what was not written.
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  const std::filesystem::path& directory() const { return directory_; }

  // Starts trackers, which are told of all that is written from now on.
  void track(const std::vector<config::TrackerConfig>& trackers, const std::filesystem::path& scripts,
             const TrackedRun& run);
  // Tells them how the run ended: finished, interrupted, failed; and of report.html where it is there.
  void end_tracking(const std::string& status);

  // Adds metrics of the running step under "prefix/name" ("train", "validation", "timing/train", "performance").
  void add(const std::string& prefix, const Metrics& metrics);
  // Writes the step's object {"step": N, "time": unix seconds, "train/reward": ...} as one line of metrics.jsonl and
  // forgets it. Not-finite numbers become null. Throws Error(data) if it cannot be written for another reason than a
  // full disk; of samples the next that are handed over do, or end_samples.
  void end_step(int64_t step);
  // Lines of metrics.jsonl so far.
  int64_t steps() const { return steps_; }

  // One line of train_data_step<N>.jsonl or val_data_step<N>.jsonl a sample (NeMo-RL's names: content, rewards,
  // input_lengths, token_ids, ...), of zst::write_lines; `file` has no name yet. `table`: of the first few, for
  // trackers.
  void samples(const std::string& name, int64_t step, zst::WaitingFile file,
               const std::vector<nlohmann::ordered_json>& table);
  // Until they are on disk, at most 30 s, after which a warning says so.
  void end_samples();

 private:
  struct Line {
    int64_t step;
    std::string text;
  };

  void write_waiting();
  void write_events(int64_t step, double time, const Metrics& scalars);
  void warn_full(const std::string& reason);
  std::string not_written() const;

  std::filesystem::path directory_;
  std::optional<AppendFile> metrics_;
  std::optional<tensorboard::EventFile> tensorboard_;
  std::optional<Trackers> trackers_;
  std::deque<Line> lines_;                 // that wait
  std::optional<zst::FileQueue> samples_;  // from the first on
  bool full_ = false;                      // it was said, and not yet that there is room again
  bool events_fit_ = true;                 // none was dropped since one was written
  int64_t events_dropped_ = 0;
  int64_t steps_ = 0;
  nlohmann::ordered_json step_ = nlohmann::ordered_json::object();
};

}  // namespace hexad::telemetry
