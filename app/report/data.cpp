#include "app/report/data.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "app/report/sample.hpp"

namespace hexad::report {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kLengthSteps = 24, kSampleSteps = 6, kSamplesPerStep = 16;
constexpr size_t kMostLengths = 1024;    // of a step; of more, every n-th
constexpr size_t kMostBytes = 64 << 20;  // of train_data files read, all steps together
constexpr size_t kMostBytesPerStep = 16 << 20;

// Five digits are more than a screen can show, and halve the page.
Json rounded(double value) {
  return std::isfinite(value) ? Json(std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr)) : Json();
}

Json column(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(rounded(value));
  return list;
}

fs::path samples_file(const RunRecord& run, int64_t step) {
  return run.directory / fmt::format("train_data_step{}.jsonl", step);
}

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

void add_samples(Json& data, const RunRecord& run, size_t runs) {
  std::vector<int64_t> logged;
  for (const int64_t step : run.steps) {
    if (fs::exists(samples_file(run, step))) logged.push_back(step);
  }
  data["lengths"] = data["samples"] = Json::array();
  if (logged.empty()) return;
  const size_t bytes = std::clamp<size_t>(fs::file_size(samples_file(run, logged.back())), 1, kMostBytesPerStep);
  const std::vector<int64_t> steps = spread(logged, std::clamp(kMostBytes / runs / bytes, size_t{3}, kLengthSteps));
  const std::vector<int64_t> shown = spread(steps, std::max<size_t>(2, kSampleSteps / runs));
  for (const int64_t step : steps) {
    const Json lines = read_json_lines(samples_file(run, step), kMostBytesPerStep);
    if (Json values = lengths_of(lines); !values.empty())
      data["lengths"].push_back({{"step", step}, {"values", std::move(values)}});
    if (std::find(shown.begin(), shown.end(), step) == shown.end()) continue;
    for (Json& sample : samples_of(lines, step)) data["samples"].push_back(std::move(sample));
  }
}

}  // namespace

Json report_data(const RunRecord& run, size_t runs) {
  Json data = {{"name", run.name}, {"directory", run.directory.string()}, {"steps", run.steps}};
  Json times = Json::array();
  for (const double time : run.times) times.push_back(std::isfinite(time) ? Json(std::round(10 * time) / 10) : Json());
  data["times"] = std::move(times);
  data["series"] = Json::object();
  for (const auto& [key, values] : run.series) data["series"][key] = column(values);
  data["config"] = run.config;
  data["settings"] = run.settings;
  add_samples(data, run, runs);
  return data;
}

}  // namespace hexad::report
