#include "core/telemetry/run_log.hpp"

#include <chrono>
#include <cmath>

#include "core/base/error.hpp"
#include "core/base/json.hpp"

namespace hexad::telemetry {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// log_dir/exp_001, exp_002 ...: the next that does not exist. create_directory tells apart who made it.
fs::path next_directory(const fs::path& log_dir) {
  std::error_code error;
  fs::create_directories(log_dir, error);
  if (error) fail(ErrorKind::data, "logger.log_dir: cannot make {}: {}", log_dir.string(), error.message());
  for (int number = 1; number < 1'000'000; ++number) {
    const fs::path candidate = log_dir / fmt::format("exp_{:03d}", number);
    if (fs::create_directory(candidate, error)) return candidate;
    if (error && error != std::errc::file_exists) {
      fail(ErrorKind::data, "logger.log_dir: cannot make {}: {}", candidate.string(), error.message());
    }
  }
  fail(ErrorKind::data, "logger.log_dir: {} is full of exp_NNN directories", log_dir.string());
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  if (!out.flush()) fail(ErrorKind::data, "cannot write {}", path.string());
}

}  // namespace

RunLog::RunLog(const fs::path& log_dir, const std::string& resolved_config, bool tensorboard)
    : directory_(next_directory(log_dir)) {
  write_text(directory_ / "config.yaml", resolved_config);
  metrics_.open(directory_ / "metrics.jsonl");
  if (!metrics_) fail(ErrorKind::data, "cannot write {}", (directory_ / "metrics.jsonl").string());
  if (tensorboard) tensorboard_.emplace(directory_);
}

void RunLog::add(const std::string& prefix, const Metrics& metrics) {
  for (const auto& [name, value] : metrics) step_[prefix + "/" + name] = std::isfinite(value) ? Json(value) : Json();
}

void RunLog::end_step(int64_t step) {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  Json line = {{"step", step}, {"time", now}};
  line.update(step_);
  if (tensorboard_) {
    Metrics finite;
    for (const auto& [name, value] : step_.items()) {
      if (value.is_number()) finite[name] = value.get<double>();
    }
    tensorboard_->write(step, now, finite);
  }
  step_ = Json::object();
  metrics_ << json_text(line) << '\n';
  ++steps_;
  if (!metrics_.flush())
    fail(ErrorKind::data, "cannot write {}: is the disk full?", (directory_ / "metrics.jsonl").string());
}

void RunLog::samples(const std::string& name, int64_t step, const std::vector<Json>& lines) {
  const fs::path path = directory_ / fmt::format("{}_step{}.jsonl", name, step);
  std::ofstream out(path);
  for (const Json& line : lines) out << json_text(line) << '\n';
  if (!out.flush()) fail(ErrorKind::data, "cannot write {}: is the disk full?", path.string());
}

}  // namespace hexad::telemetry
