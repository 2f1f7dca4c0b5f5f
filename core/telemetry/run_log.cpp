#include "core/telemetry/run_log.hpp"

#include <chrono>
#include <cmath>

#include <spdlog/spdlog.h>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

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
    fs::path candidate = log_dir / fmt::format("exp_{:03d}", number);
    if (fs::create_directory(candidate, error)) return candidate;
    if (error && error != std::errc::file_exists) {
      fail(ErrorKind::data, "logger.log_dir: cannot make {}: {}", candidate.string(), error.message());
    }
  }
  fail(ErrorKind::data, "logger.log_dir: {} is full of exp_NNN directories", log_dir.string());
}

}  // namespace

RunLog::RunLog(const fs::path& log_dir, const std::string& resolved_config, bool tensorboard)
    : directory_(next_directory(log_dir)) {
  try {
    AppendFile(directory_ / "config.yaml", 0600).append(resolved_config);
    metrics_.emplace(directory_ / "metrics.jsonl");
    if (tensorboard) tensorboard_.emplace(directory_);
  } catch (...) {
    std::error_code error;
    fs::remove_all(directory_, error);
    throw;
  }
}

RunLog::~RunLog() {
  try {
    write_waiting();
  } catch (const std::exception& error) {
    spdlog::warn("logger.log_dir: {}", error.what());
  }
  const std::string missing = not_written();
  if (!missing.empty()) spdlog::warn("logger.log_dir: {} lacks {}: there was no room", directory_.string(), missing);
}

void RunLog::track(const std::vector<config::TrackerConfig>& trackers, const fs::path& scripts, const TrackedRun& run) {
  trackers_.emplace(trackers, scripts, directory_, run);
}

void RunLog::end_tracking(const std::string& status) {
  if (trackers_) trackers_->end(status, directory_ / "report.html");
}

void RunLog::add(const std::string& prefix, const Metrics& metrics) {
  for (const auto& [name, value] : metrics) step_[prefix + "/" + name] = std::isfinite(value) ? Json(value) : Json();
}

void RunLog::end_step(int64_t step) {
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  Json line = {{"step", step}, {"time", now}};
  line.update(step_);
  Metrics finite;
  for (const auto& [name, value] : step_.items()) {
    if (value.is_number()) finite[name] = value.get<double>();
  }
  if (trackers_) trackers_->step(step, now, step_);
  step_ = Json::object();
  lines_.push_back({step, json_text(line) + "\n"});
  write_waiting();
  write_events(step, now, finite);
}

void RunLog::samples(const std::string& name, int64_t step, const std::vector<Json>& lines) {
  if (trackers_) trackers_->samples(name, step, lines);
  std::string text;
  for (const Json& line : lines) text += json_text(line) + "\n";
  samples_.push_back({fmt::format("{}_step{}.jsonl", name, step), std::move(text)});
  write_waiting();
  drop_oldest_samples();
}

// What is small first, and all of a kind in order.
void RunLog::write_waiting() {
  try {
    for (; !lines_.empty(); lines_.pop_front(), ++steps_) metrics_->append(lines_.front().text);
    for (; !samples_.empty(); samples_.pop_front(), samples_fit_ = true) {
      const fs::path path = directory_ / samples_.front().name;
      try {
        AppendFile(path).append(samples_.front().text);
      } catch (const DiskFull&) {
        std::error_code error;
        fs::remove(path, error);  // an empty file says that there were no samples
        throw;
      }
    }
  } catch (const DiskFull& error) {
    return warn_full(error.what());
  }
  if (!full_ || !samples_fit_ || !events_fit_) return;
  full_ = false;
  spdlog::warn("logger.log_dir: there is room again in {}; what waited is written", directory_.string());
}

// TensorBoard shows what is in metrics.jsonl too.
void RunLog::write_events(int64_t step, double time, const Metrics& scalars) {
  if (!tensorboard_) return;
  try {
    tensorboard_->write(step, time, scalars);
    events_fit_ = true;
  } catch (const DiskFull& error) {
    ++events_dropped_, events_fit_ = false;
    warn_full(error.what());
  }
}

// They may be of any size, and the run needs its memory.
void RunLog::drop_oldest_samples() {
  constexpr size_t kMostBytes = size_t{64} << 20;
  size_t bytes = 0;
  for (const SampleFile& file : samples_) bytes += file.text.size();
  for (; bytes > kMostBytes; samples_.pop_front(), ++samples_dropped_, samples_fit_ = false)
    bytes -= samples_.front().text.size();
}

void RunLog::warn_full(const std::string& reason) {
  if (full_) return;
  full_ = true;
  spdlog::warn(
      "logger.log_dir: {}. The run goes on and every step tries again: metrics wait in memory, so do the newest 64 MiB "
      "of samples{}. Free space in {}",
      reason, tensorboard_ ? "; TensorBoard's events are left out" : "", directory_.string());
}

std::string RunLog::not_written() const {
  std::vector<std::string> parts;
  if (!lines_.empty())
    parts.push_back(fmt::format("the metrics of steps {} to {}", lines_.front().step, lines_.back().step));
  const auto files = static_cast<int64_t>(samples_.size()) + samples_dropped_;
  if (files > 0) parts.push_back(fmt::format("{} files of samples", files));
  if (events_dropped_ > 0) parts.push_back(fmt::format("{} events of TensorBoard", events_dropped_));
  return joined(parts);
}

}  // namespace hexad::telemetry
