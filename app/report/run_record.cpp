#include "app/report/run_record.hpp"

#include <cmath>
#include <limits>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/said/secret.hpp"
#include "lib/yaml/file.hpp"
#include "lib/zst/lines_file.hpp"

namespace hexad::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double number(const Json& value) { return value.is_number() ? value.get<double>() : kNone; }

void flatten(const Json& value, const std::string& path, std::map<std::string, std::string>& settings) {
  if (!value.is_object() || value.empty()) {
    settings[path] = json_text(value);
    return;
  }
  for (const auto& [key, child] : value.items()) flatten(child, path.empty() ? key : path + "." + key, settings);
}

std::map<std::string, std::string> settings_of(const std::string& yaml, const std::string& file) {
  std::map<std::string, std::string> settings;
  try {
    flatten(yaml::read_text(yaml, file).to_json(), "", settings);
  } catch (const Error&) {  // a report is worth more than its table of settings
    settings.clear();
  }
  return settings;
}

}  // namespace

const std::vector<double>* RunRecord::find(const std::string& key) const {
  const auto found = series.find(key);
  return found == series.end() ? nullptr : &found->second;
}

std::vector<double> seconds_of_training(const RunRecord& run) {
  const std::vector<double>* durations = run.find("timing/train/total_step_time");
  std::vector<double> seconds(run.steps.size(), kNone);
  double before = 0;  // of the folders before
  for (size_t i = 0; i < run.folders.size(); ++i) {
    const size_t first = run.folders[i].first_row,
                 end = i + 1 < run.folders.size() ? run.folders[i + 1].first_row : run.steps.size();
    const double duration = durations && std::isfinite((*durations)[first]) ? (*durations)[first] : 0;
    double last = before;
    for (size_t row = first; row < end; ++row) {
      seconds[row] = before + duration + run.times[row] - run.times[first];
      if (std::isfinite(seconds[row])) last = seconds[row];
    }
    before = last;
  }
  return seconds;
}

Json read_json_lines(const fs::path& path, size_t most_bytes, bool* is_cut) {
  Json lines = Json::array();
  size_t bytes = 0;
  if (is_cut) *is_cut = false;
  if (!fs::exists(path)) return lines;
  zst::read_lines(path, [&](std::string_view text) {
    if (bytes >= most_bytes) {
      if (is_cut) *is_cut = true;
      return false;
    }
    bytes += text.size();
    if (Json line = try_parse_json<Json>(text); line.is_object()) lines.push_back(std::move(line));
    return true;
  });
  return lines;
}

RunRecord read_run(const fs::path& run_dir) {
  const Json lines = read_json_lines(run_dir / "metrics.jsonl");
  if (lines.empty())
    fail(ErrorKind::data, "report: {} has no steps. Wanted: the directory of a run (logger.log_dir/exp_NNN)",
         (run_dir / "metrics.jsonl").string());
  RunRecord run;
  run.directory = run_dir;
  run.folders = {{.directory = run_dir}};
  fs::path whole = fs::absolute(run_dir).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  run.name = whole.parent_path().filename().string() + "/" + whole.filename().string();
  for (const Json& line : lines) {
    const size_t row = run.steps.size();
    const Json step = line.value("step", Json(0));
    if (!step.is_number_integer())
      fail(ErrorKind::data, "report: {}: step is {} in row {}, want a whole number",
           (run_dir / "metrics.jsonl").string(), json_text(step), row + 1);
    run.steps.push_back(step.get<int64_t>());
    run.times.push_back(kNone);
    for (const auto& [key, value] : line.items()) {
      if (key == "step") continue;
      if (key == "time") {
        run.times[row] = number(value);
        continue;
      }
      std::vector<double>& column = run.series[key];
      column.resize(row, kNone);
      column.push_back(number(value));
    }
  }
  for (auto& [key, column] : run.series) column.resize(run.steps.size(), kNone);
  if (fs::exists(run_dir / "config.yaml")) run.config = without_secrets(read_file(run_dir / "config.yaml"));
  run.settings = settings_of(run.config, (run_dir / "config.yaml").string());
  run.folders.front().settings = run.settings;
  return run;
}

Json metrics_by_step(const std::vector<RunRecord>& runs) {
  std::map<std::string, std::map<int64_t, double>> merged;
  for (const RunRecord& run : runs) {
    for (const auto& [key, column] : run.series) {
      for (size_t row = 0; row < column.size(); ++row) {
        if (std::isfinite(column[row])) merged[key][run.steps[row]] = column[row];
      }
    }
  }
  Json metrics = Json::object();
  for (const auto& [key, values] : merged) {
    Json::object_t steps;
    for (const auto& [step, value] : values) steps.emplace_back(std::to_string(step), value);
    metrics[key] = std::move(steps);
  }
  return metrics;
}

}  // namespace hexad::report
