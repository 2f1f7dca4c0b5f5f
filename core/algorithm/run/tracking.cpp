#include "core/algorithm/run/tracking.hpp"

#include <fmt/format.h>

#include "lib/base/random.hpp"
#include "lib/yaml/secret.hpp"

namespace hexad::algorithm {

void start_trackers(Training& run, const std::filesystem::path& program, const yaml::Node& resolved) {
  const std::vector<config::TrackerConfig>& trackers = run.config.logger.trackers;
  if (trackers.empty()) return;
  constexpr size_t kIdLength = 21;  // SwanLab wants as many; W&B has no id longer than 64
  std::string& id = run.progress.run_id;
  if (id.empty()) id = random_name(kIdLength);
  for (const config::TrackerConfig& each : trackers)
    run.console.line(fmt::format("{:9} {} (run {})", "tracker", each.name, id));
  run.log.track(trackers, program.parent_path().parent_path() / "share/hexad/tracker",
                {.id = id,
                 .name = fmt::format("{}-{}", name_of(run.config.algorithm), id.substr(0, 8)),
                 .resumed_at = run.progress.total_steps,
                 .config = yaml::without_secrets(resolved).to_json()});
}

}  // namespace hexad::algorithm
