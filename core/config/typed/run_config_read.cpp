#include "core/config/typed/run_config_read.hpp"

#include <regex>

namespace hexad::config {

const yaml::Node* Reader::find(const std::string& key) const {
  const yaml::Node* node = find_any(key);
  return node && !node->is_null() ? node : nullptr;
}

void Reader::read(const std::string& key, bool& out) const {
  if (find(key)) out = root_.as_bool(path(key));
}
void Reader::read(const std::string& key, int64_t& out) const {
  if (find(key)) out = root_.as_int(path(key));
}
void Reader::read(const std::string& key, double& out) const {
  if (find(key)) out = root_.as_double(path(key));
}
void Reader::read(const std::string& key, std::string& out) const {
  if (find(key)) out = root_.as_string(path(key));
}
void Reader::read(const std::string& key, std::vector<std::string>& out) const {
  if (find(key)) out = root_.as_strings(path(key));
}
void Reader::read(const std::string& key, std::vector<double>& out) const {
  if (find(key)) out = root_.as_doubles(path(key));
}
void Reader::read(const std::string& key, nlohmann::ordered_json& out) const {
  if (const yaml::Node* node = find(key)) out = node->to_json();
}

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
