#include "core/checkpoint/store.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"

namespace hexad::checkpoint {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

fs::path step_directory(const fs::path& root, int64_t step, const char* prefix = "") {
  return root / fmt::format("{}step_{}", prefix, step);
}

// Removes tmp_step_N, in which a checkpoint is made, and under whose name an old one leaves. Returns its path.
fs::path remove_temporary(const fs::path& root, int64_t step, std::error_code& error) {
  fs::path directory = step_directory(root, step, "tmp_");
  fs::remove_all(directory, error);
  return directory;
}

// N of "step_N", or -1.
int64_t step_of(const fs::path& directory) {
  const std::string name = directory.filename().string();
  if (!name.starts_with("step_")) return -1;
  const char* const end = name.data() + name.size();
  int64_t step = 0;
  const auto [last, error] = std::from_chars(name.data() + 5, end, step);
  return error == std::errc() && last == end ? step : -1;
}

void write_synced(const fs::path& path, const std::string& text) {
  write_file(path, text);
  sync_path(path);
}

Json to_json(const TrainingInfo& info) {
  Json json = {{"consumed_samples", info.consumed_samples},
               {"current_step", info.current_step},
               {"current_epoch", info.current_epoch},
               {"total_steps", info.total_steps},
               {"total_valid_tokens", info.total_valid_tokens},
               {"weight_version", info.weight_version},
               {"loader", info.loader},
               {"identity", info.identity}};
  for (const auto& [name, value] : info.metrics) json[name] = std::isfinite(value) ? Json(value) : Json();
  return json;
}

TrainingInfo info_from(const fs::path& path) {
  const std::string text = read_file(path);
  try {
    const Json json = parse_json<Json>(text);
    TrainingInfo info;
    info.consumed_samples = json.at("consumed_samples");
    info.current_step = json.at("current_step");
    info.current_epoch = json.at("current_epoch");
    info.total_steps = json.at("total_steps");
    info.total_valid_tokens = json.at("total_valid_tokens");
    info.weight_version = json.value("weight_version", int64_t{0});
    info.loader = json.at("loader");
    info.identity = json.at("identity");
    for (const auto& [name, value] : json.items()) {
      if (name.find(':') != std::string::npos && value.is_number()) info.metrics[name] = value.get<double>();
    }
    return info;
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorKind::data, "checkpoint: {} is damaged: {}. Delete that step_N directory to resume from the one before",
         path.string(), error.what());
  }
}

std::vector<std::pair<int64_t, fs::path>> complete_steps(const fs::path& root) {
  std::vector<std::pair<int64_t, fs::path>> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root, error)) {
    const int64_t step = step_of(entry.path());
    if (step >= 0 && fs::exists(entry.path() / "training_info.json")) steps.emplace_back(step, entry.path());
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

}  // namespace

Store::Store(const config::CheckpointingConfig& config) : config_(config), root_(config.checkpoint_dir) {
  std::error_code error;
  fs::create_directories(root_, error);
  if (error) fail(ErrorKind::data, "checkpointing.checkpoint_dir: cannot make {}: {}", root_.string(), error.message());
  lock_.emplace(root_, "checkpointing.checkpoint_dir");
  for (const auto& entry : fs::directory_iterator(root_)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("tmp_step_")) fs::remove_all(entry.path());
    if (!name.starts_with("old_step_")) continue;
    // The process died between the two renames of commit(): the old one is the newest whole one of its number.
    const fs::path current = root_ / name.substr(4);
    if (fs::exists(current)) {
      fs::remove_all(entry.path());
    } else {
      fs::rename(entry.path(), current);
    }
  }
}

std::optional<Store::Found> Store::latest() const {
  const auto steps = complete_steps(root_);
  if (steps.empty()) return std::nullopt;
  const auto& [step, directory] = steps.back();
  return Found{step, directory, info_from(directory / "training_info.json")};
}

void Store::require_same(const Found& found, const Json& identity) {
  std::string text;
  for (const std::string& difference : differences(found.info.identity, identity)) text += "\n  " + difference;
  if (text.empty()) return;
  fail(ErrorKind::data,
       "checkpointing.checkpoint_dir holds the checkpoint of another run ({}):{}\nGive this run a checkpoint_dir of "
       "its own, or restore the model and data that the checkpoint was made with",
       found.directory.string(), text);
}

fs::path Store::begin(int64_t step) {
  std::error_code error;
  const fs::path directory = remove_temporary(root_, step, error);
  if (!error) fs::create_directories(directory / "policy/weights", error);
  if (!error) fs::create_directories(directory / "policy/optimizer", error);
  if (error) fail(ErrorKind::data, "checkpoint: cannot make {}: {}", directory.string(), error.message());
  return fs::absolute(directory);
}

void Store::abandon(int64_t step) {
  std::error_code ignored;
  remove_temporary(root_, step, ignored);
}

void Store::commit(int64_t step, const TrainingInfo& info, const std::string& resolved_config) {
  const fs::path temporary = step_directory(root_, step, "tmp_"), final = step_directory(root_, step),
                 old = step_directory(root_, step, "old_");
  write_synced(temporary / "training_info.json", json_text(to_json(info), 2) + "\n");
  write_synced(temporary / "config.yaml", resolved_config);
  if (fs::is_empty(temporary / "policy/optimizer")) fs::remove(temporary / "policy/optimizer");
  sync_tree(temporary);
  std::error_code error;
  fs::remove_all(old, error);
  if (fs::exists(final)) fs::rename(final, old, error);
  fs::rename(temporary, final, error);
  if (error)
    fail(ErrorKind::data, "checkpoint: cannot rename {} to {}: {}", temporary.string(), final.string(),
         error.message());
  sync_path(root_);  // before anything older goes
  fs::remove_all(old);
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const fs::path status = root_ / "latest_checkpoint_status.json";
  write_synced(status.string() + ".tmp", json_text(Json{{"step", step}, {"time", now}}) + "\n");
  fs::rename(status.string() + ".tmp", status);
  retain();
}

void Store::retain() const {
  if (!config_.keep_top_k) return;
  auto steps = complete_steps(root_);
  std::set<int64_t> kept = {steps.back().first};
  struct Ranked {
    double score;
    int64_t step;
  };
  std::vector<Ranked> ranked;
  for (const auto& [step, directory] : steps) {
    if (config_.save_period > 0 && step % config_.save_period != 0) continue;
    double score = 0;
    if (config_.metric_name) {
      const TrainingInfo info = info_from(directory / "training_info.json");
      const auto found = info.metrics.find(*config_.metric_name);
      score = found == info.metrics.end() ? -std::numeric_limits<double>::infinity()
              : config_.higher_is_better  ? found->second
                                          : -found->second;
    }
    ranked.push_back({score, step});
  }
  std::sort(ranked.begin(), ranked.end(),
            [](const Ranked& a, const Ranked& b) { return std::pair(a.score, a.step) > std::pair(b.score, b.step); });
  for (size_t i = 0; i < ranked.size() && i < static_cast<size_t>(*config_.keep_top_k); ++i)
    kept.insert(ranked[i].step);
  const size_t latest = static_cast<size_t>(config_.ft_keep_latest_k.value_or(0));
  for (size_t i = 0; i < steps.size() && i < latest; ++i) kept.insert(steps[steps.size() - 1 - i].first);
  for (const auto& [step, directory] : steps) {
    if (kept.contains(step)) continue;
    // Under the name of one that is not finished: a process that dies now leaves no step_N with a part of its files.
    std::error_code error;
    const fs::path leaving = remove_temporary(root_, step, error);
    if (!error) fs::rename(directory, leaving, error);
    if (!error) remove_temporary(root_, step, error);
    if (error) throw fs::filesystem_error("cannot remove an old checkpoint", directory, error);
  }
}

bool is_checkpoint(const fs::path& directory) {
  std::error_code unreadable;
  return fs::exists(directory / "policy/weights/config.json", unreadable);
}

std::optional<fs::path> newest_checkpoint(const fs::path& directory) {
  std::optional<fs::path> newest;
  int64_t highest = -1;
  std::error_code unreadable;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, unreadable)) {
    const int64_t step = step_of(entry.path());
    if (step > highest && is_checkpoint(entry.path())) highest = step, newest = entry.path();
  }
  return newest;
}

}  // namespace hexad::checkpoint
