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

std::optional<RunRecord> continued_by(const RunRecord& run, int64_t step) {
  const fs::path whole = fs::absolute(run.directory).lexically_normal();
  const fs::path folder = whole.has_filename() ? whole : whole.parent_path();
  for (int number = number_of(folder) - 1; number > 0; --number) {
    const fs::path earlier = folder.parent_path() / fmt::format("exp_{:03d}", number);
    if (!fs::exists(earlier / "metrics.jsonl")) continue;
    try {
      RunRecord found = read_run(earlier);
      if (checkpoints_of(found) == checkpoints_of(run) && std::ranges::count(found.steps, step) > 0) return found;
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

RunRecord with_what_it_continues(RunRecord run) {
  const int64_t step = resumed_at(run);
  if (step == 0) return run;
  std::optional<RunRecord> earlier = continued_by(run, step);
  return earlier ? joined(with_what_it_continues(std::move(*earlier)), std::move(run), step) : run;
}

}  // namespace

fs::path newest_run(const fs::path& directory) {
  if (fs::exists(directory / "metrics.jsonl")) return directory;
  fs::path newest = directory;
  int most = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const int number = number_of(entry.path());
    if (number <= most || !fs::exists(entry.path() / "metrics.jsonl")) continue;
    newest = entry.path();
    most = number;
  }
  return newest;
}

RunRecord read_resumed(const fs::path& run_dir) { return with_what_it_continues(read_run(newest_run(run_dir))); }

std::vector<RunRecord> without_continued(std::vector<RunRecord> runs) {
  const auto is_continued = [&](const RunRecord& run) {
    return std::ranges::any_of(runs, [&](const RunRecord& other) {
      std::error_code error;
      return std::any_of(other.folders.begin(), other.folders.end() - 1, [&](const LogFolder& folder) {
        return fs::equivalent(folder.directory, run.directory, error);
      });
    });
  };
  std::vector<RunRecord> kept;
  for (const RunRecord& run : runs) {
    if (!is_continued(run)) kept.push_back(run);
  }
  return kept;
}

}  // namespace hexad::report
