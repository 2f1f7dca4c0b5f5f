// Rows of rollouts: some of one, and those of several.
#include <array>
#include <string_view>

#include "core/rollout/rollout.hpp"

namespace hexad::rollout {
namespace {

bool is_count(std::string_view name) {
  const size_t slash = name.rfind('/');
  return name.substr(slash == name.npos ? 0 : slash + 1).starts_with("num_");
}

}  // namespace

void Reported::add(const std::string& name, const Entry& more) {
  Entry& entry = entries_[name];
  entry.sum += more.sum;
  entry.samples += more.samples;
  entry.mean += (more.mean - entry.mean) * (more.samples / entry.samples);
}

void Reported::add(const std::map<std::string, double>& metrics, int64_t samples) {
  for (const auto& [name, value] : metrics) add(name, {value, value, static_cast<double>(samples)});
}

void Reported::add(const Reported& more) {
  for (const auto& [name, entry] : more.entries_) add(name, entry);
}

std::map<std::string, double> Reported::values() const {
  std::map<std::string, double> values;
  for (const auto& [name, entry] : entries_) values[name] = is_count(name) ? entry.sum : entry.mean;
  return values;
}

Rollout Rollout::select(std::span<const int64_t> rows) const {
  Rollout result;
  result.batch = batch.select(rows);
  result.metrics = metrics, result.of_generators = of_generators, result.reported = reported;
  for (const int64_t row : rows) {
    result.responses.push_back(responses[row]);
    result.prompts.push_back(prompts[row]);
    result.answers.push_back(answers[row]);
    result.why_invalid.push_back(why_invalid[row]);
    for (const auto& [name, values] : components) result.components[name].push_back(values[row]);
  }
  return result;
}

void Rollout::append(const Rollout& other) {
  const std::array<data::Batch, 2> parts = {batch, other.batch};
  const auto before = static_cast<size_t>(batch.size());
  for (const auto& [name, values] : other.components) {
    auto& column = components[name];
    column.resize(before);
    column.insert(column.end(), values.begin(), values.end());
  }
  batch = data::Batch::concat(parts);
  for (auto& [name, column] : components) column.resize(static_cast<size_t>(batch.size()));
  responses.insert(responses.end(), other.responses.begin(), other.responses.end());
  prompts.insert(prompts.end(), other.prompts.begin(), other.prompts.end());
  answers.insert(answers.end(), other.answers.begin(), other.answers.end());
  why_invalid.insert(why_invalid.end(), other.why_invalid.begin(), other.why_invalid.end());
  metrics = other.metrics, of_generators = other.of_generators;
  reported.add(other.reported);
}

}  // namespace hexad::rollout
