#include "core/config/typed/duration.hpp"

#include <regex>

namespace hexad::config {

std::optional<double> duration_seconds(const std::string& text) {
  // Nine digits fit an int. No part has a bound of its own: 47 hours are 47 hours.
  static const std::regex pattern("([0-9]{1,9}):([0-9]{1,9}):([0-9]{1,9}):([0-9]{1,9})");
  std::smatch part;
  if (text.size() > 39 || !std::regex_match(text, part, pattern)) return std::nullopt;
  const auto number = [&](size_t i) { return static_cast<double>(std::stoi(part[i])); };
  return ((number(1) * 24 + number(2)) * 60 + number(3)) * 60 + number(4);
}

std::string ranked_metric(const std::string& name) {
  if (name.starts_with("val:") || name.starts_with("train:")) return name;
  return name == "val_reward" ? "val:accuracy" : "val:" + name;
}

}  // namespace hexad::config
