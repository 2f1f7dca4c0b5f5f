#include "core/config/typed/run_config_read.hpp"

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

}  // namespace hexad::config
