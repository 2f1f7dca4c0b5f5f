// What a run left in its directory, read back: for report.html, comparisons and checks of metrics.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace hexad::report {

// Of a resumed run one of the folders that it was logged in.
struct LogFolder {
  std::filesystem::path directory;
  size_t first_row = 0;  // of RunRecord::steps; what follows is of this folder, up to the next one's
  std::map<std::string, std::string> settings = {};  // of its config.yaml, as RunRecord::settings
};

struct RunRecord {
  std::filesystem::path directory;                    // of several the newest
  std::string name;                                   // its last two folders: "quickstart/exp_001"
  std::vector<LogFolder> folders;                     // the first to the newest, at least one
  std::vector<int64_t> steps;                         // of metrics.jsonl, in its order
  std::vector<double> times;                          // unix seconds; NaN where a line lacks it
  std::map<std::string, std::vector<double>> series;  // by key, [steps]; NaN where a step lacks it
  std::string config;                                 // text of config.yaml
  std::map<std::string, std::string> settings;        // its values as JSON, by dotted key; none if it is not YAML

  // The series, or null.
  const std::vector<double>* find(const std::string& key) const;
};

// One folder. Throws Error(data) if it has no metrics. A last line that a killed run left cut is passed over.
RunRecord read_run(const std::filesystem::path& run_dir);

// Seconds of training up to the end of each row, [steps]: a line is written when its step ends. The time between two
// folders of a resumed run is none. NaN where a line has no time.
std::vector<double> seconds_of_training(const RunRecord& run);

// Objects of a JSON-lines file (.zst: compressed), whole lines only, until `most_bytes` are read; `is_cut` then, where
// there is more. None if there is no such file.
nlohmann::ordered_json read_json_lines(const std::filesystem::path& path, size_t most_bytes = SIZE_MAX,
                                       bool* is_cut = nullptr);

// {"train/reward": {"1": 0.25, ...}, ...}: what NeMo-RL's check_metrics.py reads, a later run over an earlier one where
// both have a step (a run and its resumption). Numbers that are not finite are left out.
nlohmann::ordered_json metrics_by_step(const std::vector<RunRecord>& runs);

}  // namespace hexad::report
