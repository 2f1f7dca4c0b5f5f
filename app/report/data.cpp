#include "app/report/data.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/report/sample.hpp"
#include "app/report/sample_files.hpp"
#include "app/report/series.hpp"

namespace hexad::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLengthSteps = 24, kSampleSteps = 6, kSamplesPerStep = 16;
constexpr size_t kMostLengths = 1024;    // of a step; of more, every n-th
constexpr size_t kMostBytes = 64 << 20;  // of samples read, all steps together
constexpr size_t kMostBytesPerStep = 16 << 20;

// `count` of `from`, first and last among them.
template <typename T>
std::vector<T> spread(const std::vector<T>& from, size_t count) {
  if (from.size() <= count) return from;
  std::vector<T> chosen;
  for (size_t i = 0; i < count; ++i)
    chosen.push_back(from[count == 1 ? from.size() - 1 : i * (from.size() - 1) / (count - 1)]);
  return chosen;
}

Json lengths_of(const Json& lines) {
  Json values = Json::array();
  const size_t stride = lines.size() / kMostLengths + 1;
  for (size_t i = 0; i < lines.size(); i += stride) {
    if (const auto length = response_length(lines[i])) values.push_back(*length);
  }
  return values;
}

// Samples with token texts if there are any; else some from all over the step.
Json samples_of(const Json& lines, int64_t step) {
  std::vector<size_t> with_tokens, all;
  for (size_t row = 0; row < lines.size(); ++row) {
    all.push_back(row);
    if (lines[row].contains("tokens")) with_tokens.push_back(row);
  }
  Json samples = Json::array();
  for (const size_t row : spread(with_tokens.empty() ? all : with_tokens, kSamplesPerStep))
    samples.push_back(report_sample(lines[row], step, row));
  return samples;
}

// To so many digits behind the point; null where a line lacks it.
Json list_of(const std::vector<double>& values, double digits) {
  Json list = Json::array();
  for (const double value : values)
    list.push_back(std::isfinite(value) ? Json(std::round(value * digits) / digits) : Json());
  return list;
}

}  // namespace

Json metrics_data(const RunRecord& run) {
  Json data = {{"name", run.name}, {"directory", run.directory.string()}, {"continues", Json::array()}};
  for (size_t i = 0; i + 1 < run.folders.size(); ++i)
    data["continues"].push_back(run.folders[i].directory.filename().string());
  data["steps"] = run.steps;
  data["times"] = list_of(run.times, 10);
  std::vector<double> hours = seconds_of_training(run);
  for (double& each : hours) each /= 3600;
  data["hours"] = list_of(hours, 1e6);
  data["series"] = data["summary"] = Json::object();
  for (const auto& [key, column] : run.series) {
    data["series"][key] = page_series(column);
    data["summary"][key] = summary(column);
  }
  data["time"] = time_columns(run);
  data["config"] = run.config;
  data["settings"] = run.settings;
  return data;
}

Json samples_data(const RunRecord& run, size_t runs) {
  Json data = {{"lengths", Json::array()}, {"samples", Json::array()}};
  const std::vector<StepSamples> logged = logged_samples(run);
  if (logged.empty()) return data;
  const size_t bytes = std::clamp<size_t>(bytes_of(logged.back()), 1, kMostBytesPerStep);
  const std::vector<StepSamples> steps = spread(logged, std::clamp(kMostBytes / runs / bytes, size_t{3}, kLengthSteps));
  const std::vector<StepSamples> shown = spread(steps, std::max<size_t>(2, kSampleSteps / runs));
  for (const StepSamples& each : steps) {
    const Json lines = read_samples(each, kMostBytesPerStep);
    if (Json values = lengths_of(lines); !values.empty())
      data["lengths"].push_back({{"step", each.step}, {"values", std::move(values)}});
    if (std::ranges::none_of(shown, [&](const StepSamples& other) { return other.step == each.step; })) continue;
    for (Json& sample : samples_of(lines, each.step)) data["samples"].push_back(std::move(sample));
  }
  return data;
}

}  // namespace hexad::report
