#include "core/plugin/metric_sum.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "lib/base/json_integer.hpp"

namespace hexad::plugin {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no inf and nan.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value)); }

double number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string text = value.get<std::string>();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

void MetricSum::add(const std::string& name, double value, double weight, ReduceAs reduce) {
  Entry& entry = entries_[name];
  entry.reduce = reduce;
  if ((reduce == ReduceAs::min || reduce == ReduceAs::max) && weight <= 0) return;
  if (reduce == ReduceAs::min) {
    entry.value = entry.observed ? std::min(entry.value, value) : value;
  } else if (reduce == ReduceAs::max) {
    entry.value = entry.observed ? std::max(entry.value, value) : value;
  } else if (reduce == ReduceAs::last) {
    entry.value = value;
  } else {
    entry.value += value;
    entry.weight += weight;
  }
  entry.observed = true;
}

void MetricSum::add(const Json& observed) {
  for (const auto& [name, entry] : observed.items()) {
    add(name, number(entry.at(0)), number(entry.at(1)), static_cast<ReduceAs>(integer<int>(entry.at(2))));
  }
}

Json MetricSum::to_json() const {
  Json result = Json::object();
  for (const auto& [name, entry] : entries_) {
    const double weight =
        entry.reduce == ReduceAs::min || entry.reduce == ReduceAs::max ? entry.observed : entry.weight;
    result[name] = {number(entry.value), number(weight), static_cast<int>(entry.reduce)};
  }
  return result;
}

void MetricSum::merge_global_batch(const MetricSum& other, size_t count) {
  for (const auto& [name, entry] : other.entries_) {
    const bool extremum = entry.reduce == ReduceAs::min || entry.reduce == ReduceAs::max;
    const double share = entry.reduce == ReduceAs::sum ? 1.0 / static_cast<double>(count) : 1.0;
    add(name, entry.value * share, extremum ? entry.observed : entry.weight, entry.reduce);
  }
}

std::map<std::string, double> MetricSum::values() const {
  std::map<std::string, double> result;
  for (const auto& [name, entry] : entries_) {
    if (!entry.observed) {
      result[name] = -1;  // an extremum over nothing, as NeMo-RL reports it
    } else {
      result[name] = entry.reduce == ReduceAs::mean ? entry.value / entry.weight : entry.value;
    }
  }
  return result;
}

}  // namespace hexad::plugin
