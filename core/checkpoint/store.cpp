#include "core/checkpoint/store.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/file/folder.hpp"
#include "lib/base/json.hpp"
#include "lib/base/json_integer.hpp"
#include "lib/base/sha256.hpp"
#include "lib/base/text.hpp"

namespace hexad::checkpoint {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kMostRuns = 1'000'000'000;  // a folder with a higher number is somebody else's
constexpr const char* kStatusFile = "latest_checkpoint_status.json";

fs::path step_directory(const fs::path& root, int64_t step, const char* prefix = "") {
  return root / fmt::format("{}step_{}", prefix, step);
}

// Removes tmp_step_N, in which a checkpoint is made, and under whose name an old one leaves. Returns its path.
fs::path remove_temporary(const fs::path& root, int64_t step, std::error_code& error) {
  fs::path directory = step_directory(root, step, "tmp_");
  fs::remove_all(directory, error);
  return directory;
}

// N of "step_N", or of another prefix; -1 for other names.
int64_t step_of(const fs::path& directory, std::string_view prefix = "step_") {
  const std::string name = directory.filename().string();
  if (!name.starts_with(prefix)) return -1;
  const char* const end = name.data() + name.size();
  int64_t step = 0;
  const auto [last, error] = std::from_chars(name.data() + prefix.size(), end, step);
  return error == std::errc() && last == end ? step : -1;
}

void write_synced(const fs::path& path, const std::string& text) {
  write_file(path, text);
  sync_path(path);
}

std::string digest_of(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); }

Json to_json(const TrainingInfo& info) {
  Json json = {{"consumed_samples", info.consumed_samples},
               {"current_step", info.current_step},
               {"current_epoch", info.current_epoch},
               {"total_steps", info.total_steps},
               {"total_valid_tokens", info.total_valid_tokens},
               {"weight_version", info.weight_version},
               {"loader", info.loader},
               {"identity", info.identity}};
  if (!info.run_id.empty()) json["run_id"] = info.run_id;
  for (const auto& [name, value] : info.metrics) json[name] = std::isfinite(value) ? Json(value) : Json();
  if (info.files.empty()) return json;
  json["files"] = to_json(info.files);
  if (has_checksums(info.files)) json["sha256"] = digest_of(json_text(json));  // the last one: of all before it
  return json;
}

// Of a training_info.json, which is what it says of itself; nothing where it says nothing.
FileSums files_of(Json json) {
  FileSums files;
  if (json.contains("files")) files = sums_from(json.at("files"));
  if (!json.contains("sha256") && !has_checksums(files)) return files;
  const std::string saved = json.at("sha256");
  json.erase("sha256");
  if (digest_of(json_text(json)) != saved) fail(ErrorKind::data, "its content has another sha256 than it says");
  return files;
}

// Under a name that is free: nothing of a user's is removed because a disk has damaged it.
fs::path mark_damaged(const fs::path& directory) {
  const fs::path aside = directory.parent_path() / ("damaged_" + directory.filename().string());
  fs::path free = aside;
  for (int number = 2; fs::exists(fs::symlink_status(free)); ++number)
    free = fmt::format("{}.{}", aside.string(), number);
  std::error_code error;
  fs::rename(directory, free, error);
  if (error)
    fail(ErrorKind::data, "checkpoint: cannot rename {} to {}: {}", directory.string(), free.string(), error.message());
  return free;
}

}  // namespace

Store::Store(const config::CheckpointingConfig& config) : config_(config), root_(config.checkpoint_dir) {
  std::error_code error;
  fs::create_directories(root_, error);
  if (error) fail(ErrorKind::data, "checkpointing.checkpoint_dir: cannot make {}: {}", root_.string(), error.message());
  lock_.emplace(root_, "checkpointing.checkpoint_dir");
  for (const fs::directory_entry& entry : entries_of(root_)) {
    const std::string name = entry.path().filename().string();
    const bool is_old = name.starts_with("old_step_");
    if (!is_old && !name.starts_with("tmp_step_")) continue;
    // The process died between the two renames of commit(): the old one is the newest whole one of its number.
    if (const fs::path current = root_ / name.substr(4); is_old && !fs::exists(current, error))
      fs::rename(entry.path(), current, error);
    else
      fs::remove_all(entry.path(), error);
    if (error)
      fail(ErrorKind::data, "checkpointing.checkpoint_dir: cannot clear away {}, left by a dead run: {}. Remove it",
           entry.path().string(), error.message());
  }
}

std::optional<Store::Found> Store::latest() const {
  const auto steps = list_steps(root_);
  if (steps.empty()) return std::nullopt;
  const auto& [step, directory] = steps.back();
  return Found{step, directory, read_info(directory)};
}

std::optional<Store::Found> Store::newest_intact(const std::function<void(const std::string&)>& tell) {
  std::vector<std::pair<fs::path, std::string>> damaged;
  std::optional<Found> found = find_intact(config_, /*quick=*/false, damaged);
  for (const auto& [bad, what] : damaged)
    tell(fmt::format("the checkpoint {} is damaged: {}. It is kept as {}; {} is the newest that is intact",
                     bad.string(), what, mark_damaged(bad).string(), found->directory.string()));
  return found;
}

std::optional<Store::Found> Store::find_intact(const config::CheckpointingConfig& config, bool quick,
                                               std::vector<std::pair<fs::path, std::string>>& damaged) {
  auto steps = list_steps(config.checkpoint_dir, /*all=*/true);
  for (; !steps.empty(); steps.pop_back()) {
    const auto& [step, directory] = steps.back();
    Inspection found = inspect(directory, quick);
    if (found.damage.empty()) return Found{step, directory, std::move(found.info)};
    damaged.emplace_back(directory, joined(found.damage, "; "));
    if (config.resume_from_older || steps.size() == 1) continue;
    fail(ErrorKind::data,
         "checkpointing.resume_from_older is false, and the newest checkpoint {} is damaged: {}. Restore it from a "
         "copy, or set the key to true: the one before it is {}",
         directory.string(), damaged.back().second, steps[steps.size() - 2].second.string());
  }
  if (damaged.empty()) return std::nullopt;
  std::string text;
  constexpr size_t kMostNamed = 10;
  for (const auto& [bad, what] : std::span(damaged).first(std::min(damaged.size(), kMostNamed)))
    text += fmt::format("\n  {}: {}", bad.string(), what);
  if (damaged.size() > kMostNamed) text += fmt::format("\n  and {} older ones", damaged.size() - kMostNamed);
  fail(ErrorKind::data,
       "checkpointing.checkpoint_dir has no checkpoint that is intact:{}\nRestore one from a copy, or give this run a "
       "checkpoint_dir of its own",
       text);
}

std::optional<fs::path> Store::set_aside() {
  std::vector<std::pair<int64_t, fs::path>> moved;  // the newest last
  int64_t runs = 0;
  for (const fs::directory_entry& entry : entries_of(root_)) {
    const int64_t step = step_of(entry.path());
    if (step >= 0) moved.emplace_back(step, entry.path());
    if (const int64_t run = step_of(entry.path(), "run_"); run < kMostRuns) runs = std::max(runs, run);
  }
  if (moved.empty()) return std::nullopt;
  std::ranges::sort(moved);
  const fs::path aside = root_ / fmt::format("run_{}", runs + 1), status = root_ / kStatusFile;
  if (fs::exists(status)) moved.emplace(moved.begin(), -1, status);
  std::error_code error;
  fs::create_directory(aside, error);
  for (const auto& [step, path] : moved)
    if (!error) fs::rename(path, aside / path.filename(), error);
  if (error)
    fail(ErrorKind::data, "checkpointing.resume_if_exists: cannot move the checkpoints of {} to {}: {}", root_.string(),
         aside.string(), error.message());
  sync_path(aside);
  sync_path(root_);
  return aside;
}

void Store::require_same(const Found& found, const Json& identity) {
  std::string text;
  for (const std::string& difference : differences(found.info.identity, identity)) text += "\n  " + difference;
  if (text.empty()) return;
  fail(ErrorKind::data,
       "checkpointing.checkpoint_dir holds the checkpoint of another run ({}):{}\nGive this run a checkpoint_dir of "
       "its own, start afresh in this one (--fresh keeps what is there in run_<n>), or restore the model and data that "
       "the checkpoint was made with",
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
  TrainingInfo whole = info;
  if (!info.files.empty())
    whole.files["config.yaml"] = {resolved_config.size(), has_checksums(info.files) ? digest_of(resolved_config) : ""};
  write_synced(temporary / "training_info.json", json_text(to_json(whole), 2) + "\n");
  write_own_file(temporary / "config.yaml", resolved_config);
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
  const fs::path status = root_ / kStatusFile;
  write_synced(status.string() + ".tmp", json_text(Json{{"step", step}, {"time", now}}) + "\n");
  fs::rename(status.string() + ".tmp", status);
  retain();
}

// What retention ranks by; of one that does not say it, or cannot be read any more, less than any other's.
double Store::score_of(const fs::path& directory) const {
  try {
    const TrainingInfo info = read_info(directory);
    const auto found = info.metrics.find(*config_.metric_name);
    if (found != info.metrics.end()) return config_.higher_is_better ? found->second : -found->second;
  } catch (const Error&) {  // it is told of when a run resumes
  }
  return -std::numeric_limits<double>::infinity();
}

void Store::retain() const {
  if (!config_.keep_top_k) return;
  auto steps = list_steps(root_);
  std::set<int64_t> kept = {steps.back().first};
  struct Ranked {
    double score;
    int64_t step;
  };
  std::vector<Ranked> ranked;
  for (const auto& [step, directory] : steps) {
    if (config_.save_period > 0 && step % config_.save_period != 0) continue;
    ranked.push_back({config_.metric_name ? score_of(directory) : 0, step});
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

TrainingInfo read_info(const fs::path& directory) {
  const fs::path path = directory / "training_info.json";
  const std::string text = read_regular_file(path);
  try {
    const Json json = parse_json<Json>(text);
    TrainingInfo info;
    info.files = files_of(json);
    info.consumed_samples = count_of(json, "consumed_samples");
    info.current_step = count_of(json, "current_step");
    info.current_epoch = count_of(json, "current_epoch");
    info.total_steps = count_of(json, "total_steps");
    info.total_valid_tokens = count_of(json, "total_valid_tokens");
    if (json.contains("weight_version")) info.weight_version = count_of(json, "weight_version");
    info.loader = json.at("loader");
    info.identity = json.at("identity");
    info.run_id = json.value("run_id", "");
    for (const auto& [name, value] : json.items()) {
      if (name.find(':') != std::string::npos && value.is_number()) info.metrics[name] = value.get<double>();
    }
    // A run would go on from the highest number, be it a copy of an older step.
    if (const int64_t step = step_of(path.parent_path()); step >= 0 && step != info.total_steps)
      fail(ErrorKind::data, "it is of step {}: was the folder copied or renamed?", info.total_steps);
    return info;
  } catch (const std::exception& error) {
    fail(ErrorKind::data, "checkpoint: {} is damaged: {}", path.string(), error.what());
  }
}

Inspection inspect(const fs::path& directory, bool quick) {
  Inspection result;
  try {
    result.info = read_info(directory);
    FileSums saved = result.info.files;
    if (quick)
      for (auto& [path, sum] : saved) sum.sha256.clear();
    result.damage = damage(directory, saved);
  } catch (const Error& error) {
    result.damage = {error.what()};
  }
  return result;
}

std::vector<std::pair<int64_t, fs::path>> list_steps(const fs::path& directory, bool all) {
  std::vector<std::pair<int64_t, fs::path>> steps;
  for (const fs::directory_entry& entry : entries_of(directory)) {
    const int64_t step = step_of(entry.path());
    if (step < 0 || !entry.is_directory()) continue;
    if (all || fs::exists(entry.path() / "training_info.json")) steps.emplace_back(step, entry.path());
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

void require_intact_model(const fs::path& model_dir) {
  std::error_code unreadable;
  fs::path step = fs::canonical(model_dir, unreadable);
  if (unreadable) return;
  if (step.filename() == "weights" && step.parent_path().filename() == "policy")
    step = step.parent_path().parent_path();
  const fs::path path = step / "training_info.json";
  if (step_of(step) < 0 || !fs::exists(path, unreadable)) return;
  FileSums files;
  try {
    files = files_of(parse_json<Json>(read_regular_file(path)));
  } catch (const std::exception& error) {
    fail(ErrorKind::data, "checkpoint: {} is damaged: {}", path.string(), error.what());
  }
  std::erase_if(files, [](const auto& file) { return file.first.starts_with("policy/optimizer/"); });
  if (const std::vector<std::string> lines = damage(step, files); !lines.empty())
    fail(ErrorKind::data, "the checkpoint {} is damaged: {}. Restore it from a copy, or take another step",
         step.string(), joined(lines, "; "));
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
