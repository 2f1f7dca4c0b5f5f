#include "app/report/resumption.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "lib/base/error.hpp"

namespace hexad::report {
namespace {

namespace fs = std::filesystem;

// N of exp_N; 0 of another name.
int number_of(const fs::path& run_dir) {
  const std::string name = run_dir.filename().string();
  int number = 0;
  if (name.starts_with("exp_")) std::from_chars(name.data() + 4, name.data() + name.size(), number);
  return number;
}

// The step of the checkpoint that the folder goes on from; 0 if it begins anew. A line of validation alone may stand
// before the first step.
int64_t resumed_at(const RunRecord& run) {
  const bool trained = std::ranges::any_of(
      run.series, [](const auto& each) { return each.first.starts_with("train/") && std::isfinite(each.second[0]); });
  return std::max<int64_t>(0, run.steps.front() - (trained ? 1 : 0));
}

std::string checkpoints_of(const RunRecord& run) {
  const auto found = run.settings.find("checkpointing.checkpoint_dir");
  return found == run.settings.end() ? "" : found->second;
}

// Whether a checkpoint of that step may be of that start: it is there before the step's line is, and a killed start
// never writes that one.
bool has_reached(const RunRecord& run, int64_t step) {
  return run.steps.back() == step - 1 || std::ranges::count(run.steps, step) > 0;
}

// A start has an empty file until its first step ends. A folder that cannot be looked into has none.
bool has_metrics(const fs::path& directory) {
  std::error_code error;
  const uintmax_t bytes = fs::file_size(directory / "metrics.jsonl", error);
  return !error && bytes > 0;
}

std::optional<RunRecord> continued_by(const RunRecord& run, int64_t step) {
  const fs::path whole = fs::absolute(run.directory).lexically_normal();
  const fs::path folder = whole.has_filename() ? whole : whole.parent_path();
  for (int number = number_of(folder) - 1; number > 0; --number) {
    const fs::path earlier = folder.parent_path() / fmt::format("exp_{:03d}", number);
    if (!has_metrics(earlier)) continue;
    try {
      RunRecord found = read_run(earlier);
      if (checkpoints_of(found) == checkpoints_of(run) && has_reached(found, step)) return found;
    } catch (const Error&) {  // one that ended before its first step
    }
  }
  return std::nullopt;
}

// The rows of `earlier` up to `step`, and then those of `later`.
RunRecord joined(const RunRecord& earlier, RunRecord later, int64_t step) {
  const auto after = std::ranges::find_if(earlier.steps, [&](int64_t each) { return each > step; });
  const auto kept = after - earlier.steps.begin();
  const size_t rows = later.steps.size();
  const auto put_before = [&](auto& column, const auto& from) {
    column.insert(column.begin(), from.begin(), from.begin() + kept);
  };
  put_before(later.steps, earlier.steps);
  put_before(later.times, earlier.times);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> none(static_cast<size_t>(kept), kNone);
  for (auto& [key, column] : later.series) {
    const std::vector<double>* before = earlier.find(key);
    put_before(column, before ? *before : none);
  }
  for (const auto& [key, column] : earlier.series) {
    if (later.find(key)) continue;
    std::vector<double>& whole = later.series[key];
    whole.assign(rows, kNone);
    put_before(whole, column);
  }
  later.folders.front().first_row = static_cast<size_t>(kept);
  later.folders.insert(later.folders.begin(), earlier.folders.begin(), earlier.folders.end());
  return later;
}

bool is_one_of(const fs::path& folder, const std::vector<fs::path>& folders) {
  std::error_code error;
  return std::ranges::any_of(folders, [&](const fs::path& each) { return fs::equivalent(folder, each, error); });
}

// Nothing of the folders `apart`.
RunRecord with_what_it_continues(RunRecord run, const std::vector<fs::path>& apart) {
  const int64_t step = resumed_at(run);
  if (step == 0) return run;
  std::optional<RunRecord> earlier = continued_by(run, step);
  if (!earlier || is_one_of(earlier->directory, apart)) return run;
  return joined(with_what_it_continues(std::move(*earlier), apart), std::move(run), step);
}

}  // namespace

fs::path newest_run(const fs::path& directory) {
  if (has_metrics(directory)) return directory;
  fs::path newest = directory;
  int most = 0;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const int number = number_of(entry->path());
    if (number <= most || !has_metrics(entry->path())) continue;
    newest = entry->path();
    most = number;
  }
  return newest;
}

RunRecord read_resumed(const fs::path& run_dir) { return with_what_it_continues(read_run(newest_run(run_dir)), {}); }

std::vector<RunRecord> read_named(const std::vector<fs::path>& directories) {
  std::vector<fs::path> folders;
  for (const fs::path& each : directories) folders.push_back(newest_run(each));
  std::vector<RunRecord> runs;
  for (const fs::path& each : folders) runs.push_back(with_what_it_continues(read_run(each), folders));
  return runs;
}

}  // namespace hexad::report
