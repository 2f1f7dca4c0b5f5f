#include "core/rollout/reported.hpp"

#include <string_view>

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

}  // namespace hexad::rollout
