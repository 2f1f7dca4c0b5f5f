#include "app/verify/verify.hpp"

#include <algorithm>

#include "lib/base/json.hpp"

namespace hexad::plugin {

bool assign(nlohmann::ordered_json& config, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  const std::string text = assignment.substr(equals + 1);
  const auto value = try_parse_json<nlohmann::ordered_json>(text);
  std::string path = "/" + assignment.substr(0, equals);
  std::replace(path.begin(), path.end(), '.', '/');
  try {
    config[nlohmann::ordered_json::json_pointer(path)] = value.is_discarded() ? nlohmann::ordered_json(text) : value;
  } catch (const nlohmann::ordered_json::exception&) {  // a key with '~', or one below a value that is no map
    return false;
  }
  return true;
}

}  // namespace hexad::plugin
