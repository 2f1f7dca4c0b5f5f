#include "core/config/duration.hpp"

#include <regex>

namespace hexad::config {

std::optional<double> duration_seconds(const std::string& text) {
  static const std::regex pattern("([0-9]{1,4}):([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})");
  std::smatch part;
  if (text.size() > 20 || !std::regex_match(text, part, pattern)) return std::nullopt;
  const int days = std::stoi(part[1]), hours = std::stoi(part[2]), minutes = std::stoi(part[3]),
            seconds = std::stoi(part[4]);
  if (hours > 23 || minutes > 59 || seconds > 59) return std::nullopt;
  return ((days * 24.0 + hours) * 60 + minutes) * 60 + seconds;
}

std::string ranked_metric(const std::string& name) {
  if (name.starts_with("val:") || name.starts_with("train:")) return name;
  return name == "val_reward" ? "val:accuracy" : "val:" + name;
}

}  // namespace hexad::config
