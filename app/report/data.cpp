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
constexpr size_t kMostLookedAt = size_t{1} << 30;  // for lines with token texts, all steps together: about a second

// `count` of `from`, first and last among them.
template <typename T>
std::vector<T> spread(const std::vector<T>& from, size_t count) {
  if (from.size() <= count) return from;
  std::vector<T> chosen;
  for (size_t i = 0; i < count; ++i)
    chosen.push_back(from[count == 1 ? from.size() - 1 : i * (from.size() - 1) / (count - 1)]);
  return chosen;
}

std::vector<int64_t> lengths_of(const Json& lines) {
  std::vector<int64_t> lengths;
  for (const Json& line : lines) {
    if (const auto length = response_length(line)) lengths.push_back(*length);
  }
  return lengths;
}

Json some_of(const std::vector<int64_t>& lengths) {
  Json values = Json::array();
  const size_t stride = lengths.size() / kMostLengths + 1;
  for (size_t i = 0; i < lengths.size(); i += stride) values.push_back(lengths[i]);
  return values;
}

// {"step", "values"} and, where these are not of all its responses, "first".
Json step_lengths(const StepSamples& samples) {
  if (const auto all = all_response_lengths(samples); !all.empty())
    return {{"step", samples.step}, {"values", some_of(all)}};
  bool is_cut = false;
  const std::vector<int64_t> lengths = lengths_of(read_samples(samples, kMostBytesPerStep, &is_cut));
  Json made = {{"step", samples.step}, {"values", some_of(lengths)}};
  if (is_cut) made["first"] = lengths.size();
  return made;
}

// Samples with token texts if there are any; else some from all over what is read of the step.
Json step_samples(const StepSamples& step, size_t most_looked_at) {
  std::vector<SampleLine> found = samples_with_texts(step, kMostBytesPerStep, most_looked_at);
  if (found.empty()) {
    for (Json& line : read_samples(step, kMostBytesPerStep)) found.push_back({found.size(), std::move(line)});
  }
  std::vector<const SampleLine*> all;
  for (const SampleLine& each : found) all.push_back(&each);
  Json samples = Json::array();
  for (const SampleLine* each : spread(all, kSamplesPerStep))
    samples.push_back(report_sample(each->line, step.step, each->row));
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
  Json data = {{"directory", run.directory.string()}, {"lengths", Json::array()}, {"samples", Json::array()}};
  const std::vector<StepSamples> logged = logged_samples(run);
  if (logged.empty()) return data;
  const size_t bytes = std::clamp<size_t>(bytes_of(logged.back()), 1, kMostBytesPerStep);
  const size_t count = std::clamp(kMostBytes / runs / bytes, size_t{3}, kLengthSteps);  // that are read for lengths
  const std::vector<StepSamples> shown = spread(logged, std::min(count, std::max<size_t>(2, kSampleSteps / runs)));
  for (const StepSamples& each : shown) {
    for (Json& sample : step_samples(each, kMostLookedAt / runs / shown.size()))
      data["samples"].push_back(std::move(sample));
  }
  const bool are_told = !all_response_lengths(logged.back()).empty();
  for (const StepSamples& each : spread(logged, are_told ? kLengthSteps : count)) {
    if (Json lengths = step_lengths(each); !lengths.at("values").empty()) data["lengths"].push_back(std::move(lengths));
  }
  return data;
}

}  // namespace hexad::report
