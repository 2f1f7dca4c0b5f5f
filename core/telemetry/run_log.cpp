#include "core/telemetry/run_log.hpp"

#include <chrono>
#include <cmath>

#include <spdlog/spdlog.h>

#include "lib/base/error.hpp"
#include "lib/base/file/numbered_folder.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

namespace hexad::telemetry {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char *kName = "exp", *kKey = "logger.log_dir";

}  // namespace

void require_run_directory(const fs::path& log_dir) { require_numbered_folder(log_dir, kName, kKey); }

RunLog::RunLog(const fs::path& log_dir, const std::string& resolved_config, bool tensorboard)
    : directory_(make_numbered_folder(log_dir, kName, kKey)) {
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
    end_samples();
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
  if (samples_) samples_->retry();
  write_events(step, now, finite);
}

void RunLog::samples(const std::string& name, int64_t step, zst::WaitingFile file, const std::vector<Json>& table) {
  if (trackers_) trackers_->samples(name, step, table);
  file.name = fmt::format("{}_step{}.jsonl", name, step);
  if (!samples_) samples_.emplace(directory_);
  samples_->put(std::move(file));
  write_waiting();
}

void RunLog::end_samples() {
  constexpr std::chrono::seconds kPatience(30);
  write_waiting();
  if (samples_) samples_->retry();
  if (samples_ && !samples_->wait(kPatience))
    spdlog::warn("logger.log_dir: samples are not all in {} after {} s: its disk is too slow", directory_.string(),
                 kPatience.count());
  write_waiting();
}

void RunLog::write_waiting() {
  try {
    for (; !lines_.empty(); lines_.pop_front(), ++steps_) metrics_->append(lines_.front().text);
  } catch (const DiskFull& error) {
    return warn_full(error.what());
  }
  if (const std::string reason = samples_ ? samples_->no_room() : ""; !reason.empty()) return warn_full(reason);
  if (!full_ || !events_fit_ || (samples_ && samples_->waiting() > 0)) return;
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
  if (const int64_t files = samples_ ? samples_->waiting() + samples_->left_out() : 0; files > 0)
    parts.push_back(fmt::format("{} files of samples", files));
  if (events_dropped_ > 0) parts.push_back(fmt::format("{} events of TensorBoard", events_dropped_));
  return joined(parts);
}

}  // namespace hexad::telemetry
