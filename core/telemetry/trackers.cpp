#include "core/telemetry/trackers.hpp"

#include "lib/base/json.hpp"
#include "lib/base/utf8.hpp"
#include "lib/process/secret.hpp"

namespace hexad::telemetry {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::chrono::seconds kEndTakes(30), kBrokenEndTakes(5);
constexpr size_t kMostRows = 16, kMostText = 4000;  // of a table of samples

// Of a tracker's settings, under whatever name its service has for it.
std::string setting(const Json& settings, std::initializer_list<const char*> names, const std::string& otherwise) {
  for (const char* name : names) {
    if (settings.contains(name) && settings.at(name).is_string()) return settings.at(name).get<std::string>();
  }
  return otherwise;
}

// What ships with the engine needs a Python that has the service's library, but for a server of MLflow.
std::vector<std::string> command_of(const config::TrackerConfig& config, const fs::path& scripts) {
  const char* variable = std::getenv("MLFLOW_TRACKING_URI");
  if (config.script == "to_mlflow.py" &&
      setting(config.settings, {"tracking_uri"}, variable ? variable : "").starts_with("http"))
    return {(scripts / "../../../bin/hexad-mlflow").lexically_normal().string()};
  std::vector<std::string> command = config.command;
  if (!config.script.empty()) command.push_back((scripts / config.script).string());
  return command;
}

}  // namespace

Trackers::Trackers(const std::vector<config::TrackerConfig>& configs, const fs::path& scripts, const fs::path& folder,
                   const TrackedRun& run) {
  for (const config::TrackerConfig& config : configs) {
    feeds_.push_back(
        std::make_unique<program::Feed>(program::FeedSettings{.who = "tracker " + config.name,
                                                              .name = "tracker",
                                                              .command = command_of(config, scripts),
                                                              .withheld = process::secrets_of_ours(config.pass_env)}));
    const Json start = {{"event", "start"},
                        {"id", run.id},
                        {"project", setting(config.settings, {"project", "experiment_name"}, "hexad")},
                        {"name", setting(config.settings, {"name", "run_name"}, run.name)},
                        {"resumed_at", run.resumed_at},
                        {"log_dir", fs::absolute(folder).string()},
                        {"settings", config.settings},
                        {"config", run.config}};
    feeds_.back()->put(json_text(start));
  }
}

void Trackers::tell(const Json& event) {
  const std::string line = json_text(event);
  for (const auto& feed : feeds_) feed->put(line);
}

void Trackers::step(int64_t step, double time, const Json& metrics) {
  tell({{"event", "step"}, {"step", step}, {"time", time}, {"metrics", metrics}});
}

void Trackers::samples(const std::string& name, int64_t step, const std::vector<Json>& lines) {
  Json columns = Json::array(), rows = Json::array();
  for (size_t i = 0; i < std::min(lines.size(), kMostRows); ++i) {
    Json row = Json::array();
    for (const auto& [column, value] : lines[i].items()) {
      if (value.is_structured()) continue;  // tokens and what each has: too much, and no cell of a table
      if (i == 0) columns.push_back(column);
      row.push_back(value.is_string() ? Json(shortened(value.get_ref<const std::string&>(), kMostText)) : value);
    }
    rows.push_back(std::move(row));
  }
  tell({{"event", "samples"}, {"step", step}, {"name", name}, {"columns", columns}, {"rows", rows}});
}

void Trackers::end(const std::string& status, const fs::path& report) {
  std::error_code none;
  if (fs::exists(report, none))
    tell({{"event", "artifact"}, {"name", "report"}, {"path", fs::absolute(report).string()}});
  const Json last = {{"event", "end"}, {"status", status}};
  for (const auto& feed : feeds_) feed->close(json_text(last), status == "finished" ? kEndTakes : kBrokenEndTakes);
  feeds_.clear();
}

}  // namespace hexad::telemetry
