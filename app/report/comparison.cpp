#include "app/report/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "lib/base/said/printable.hpp"
#include "lib/text/text_width.hpp"

namespace hexad::report {
namespace {

constexpr size_t kWidth = 80, kLabel = 36, kCell = 11, kRunsAbreast = (kWidth - kLabel) / kCell;
constexpr size_t kLastSteps = 10;

// NaN where the run lacks the metric.
double final_value(const RunRecord& run, const std::string& key) {
  const std::vector<double>* column = run.find(key);
  // "validation/" of RL and SFT, "validation-default/" of preferences.
  const size_t most = key.starts_with("validation") ? 1 : kLastSteps;
  double sum = 0;
  size_t count = 0;
  for (size_t row = column ? column->size() : 0; row-- > 0 && count < most;) {
    if (!std::isfinite((*column)[row])) continue;
    sum += (*column)[row];
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

double elapsed(const RunRecord& run) { return seconds_of_training(run).back(); }

std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.4g}", value) : "-"; }

// One row of a table: a cell for every run of `from` to `to`.
template <typename Cell>
std::string table_row(const std::string& label, size_t from, size_t to, Cell&& cell) {
  std::string row = text::padded(label, kLabel);
  for (size_t i = from; i < to; ++i) row += fmt::format("{:>{}}", cell(i), kCell);
  return row + "\n";
}

std::string heads(const std::string& label, size_t from, size_t to) {
  return table_row(label, from, to, [](size_t i) { return fmt::format("[{}]", i + 1); });
}

std::string final_table(const std::vector<RunRecord>& runs, size_t from, size_t to) {
  std::string table = heads("last 10 steps, mean", from, to);
  table += table_row("steps", from, to, [&](size_t i) { return std::to_string(runs[i].steps.back()); });
  table += table_row("seconds", from, to, [&](size_t i) { return number(elapsed(runs[i])); });
  for (const char* key : kCompared) {
    if (std::none_of(runs.begin(), runs.end(), [&](const RunRecord& run) { return run.find(key) != nullptr; }))
      continue;
    table += table_row(key, from, to, [&](size_t i) { return number(final_value(runs[i], key)); });
  }
  return table;
}

using Settings = std::map<std::string, std::string>;

std::string setting(const Settings& settings, const std::string& key) {
  const auto found = settings.find(key);
  return found == settings.end() ? "-" : found->second;
}
std::string setting(const RunRecord& run, const std::string& key) { return setting(run.settings, key); }

// Of keys whose values are not all the same.
std::vector<std::string> differing(const std::vector<const Settings*>& all) {
  std::set<std::string> keys;
  for (const Settings* each : all) {
    for (const auto& [key, value] : *each) keys.insert(key);
  }
  std::erase_if(keys, [&](const std::string& key) {
    const std::string first = setting(*all.front(), key);
    return std::ranges::all_of(all, [&](const Settings* each) { return setting(*each, key) == first; });
  });
  return {keys.begin(), keys.end()};
}

// A row where all values are short, under the key if that is long; else one line a run.
std::string difference(const std::vector<RunRecord>& runs, const std::string& key) {
  const bool is_row = runs.size() <= kRunsAbreast && std::all_of(runs.begin(), runs.end(), [&](const RunRecord& run) {
                        return text::text_width(setting(run, key)) < kCell;
                      });
  const bool fits = text::text_width(one_line(key)) < kLabel;
  std::string lines = is_row && fits ? "" : text::cut_to_width(one_line(key), kWidth) + "\n";
  if (is_row) {
    return lines +
           table_row(fits ? one_line(key) : "", 0, runs.size(), [&](size_t i) { return setting(runs[i], key); });
  }
  for (size_t i = 0; i < runs.size(); ++i)
    lines += text::cut_to_width(fmt::format("  [{}] {}", i + 1, setting(runs[i], key)), kWidth) + "\n";
  return lines;
}

}  // namespace

std::vector<std::string> resumptions(const RunRecord& run) {
  std::vector<std::string> lines;
  for (size_t i = 0; i + 1 < run.folders.size(); ++i) {
    const LogFolder &before = run.folders[i], &after = run.folders[i + 1];
    std::string line =
        fmt::format("{} goes on from {}: one run", after.directory.string(), before.directory.filename().string());
    if (const size_t count = differing({&before.settings, &after.settings}).size(); count > 0)
      line +=
          fmt::format(". {} differ{}: hexad report {} {}", count == 1 ? "1 setting" : fmt::format("{} settings", count),
                      count == 1 ? "s" : "", before.directory.string(), after.directory.string());
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string comparison(const std::vector<RunRecord>& runs) {
  std::string text;
  for (size_t i = 0; i < runs.size(); ++i)
    text += fmt::format("[{}] {}\n", i + 1, one_line(runs[i].directory.string()));
  for (size_t from = 0; from < runs.size(); from += kRunsAbreast)
    text += "\n" + final_table(runs, from, std::min(runs.size(), from + kRunsAbreast));
  if (runs.size() < 2) return text;
  std::vector<const Settings*> settings;
  for (const RunRecord& run : runs) settings.push_back(&run.settings);
  std::string differences;
  for (const std::string& key : differing(settings)) differences += difference(runs, key);
  if (differences.empty()) return text + "\nThe settings are the same.\n";
  return text + "\n" + heads("settings that differ", 0, std::min(runs.size(), kRunsAbreast)) + differences;
}

}  // namespace hexad::report
