// Programs that are told of a run while it goes on, by lines of JSON: docs/trackers.md.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/config/typed/system_config.hpp"
#include "lib/program/feed.hpp"

namespace hexad::telemetry {

struct TrackedRun {
  std::string id;                 // the same when it is resumed
  std::string name;               // where a tracker's settings have none
  int64_t resumed_at = 0;         // step; 0: the run begins
  nlohmann::ordered_json config;  // resolved, without secrets
};

// They never slow or end the run (program::Feed).
class Trackers {
 public:
  // Starts them, and tells them of the run. `scripts`: folder of those that ship with the engine; `folder`: the run's.
  Trackers(const std::vector<config::TrackerConfig>& configs, const std::filesystem::path& scripts,
           const std::filesystem::path& folder, const TrackedRun& run);

  void step(int64_t step, double time, const nlohmann::ordered_json& metrics);
  // A table of the first few, of their numbers and texts.
  void samples(const std::string& name, int64_t step, const std::vector<nlohmann::ordered_json>& lines);
  // The last of all; `report` where that file is there. Waits for their ends, but for no more than kEndTakes, and less
  // where the run did not finish.
  void end(const std::string& status, const std::filesystem::path& report);

 private:
  void tell(const nlohmann::ordered_json& event);

  std::vector<std::unique_ptr<program::Feed>> feeds_;
};

}  // namespace hexad::telemetry
