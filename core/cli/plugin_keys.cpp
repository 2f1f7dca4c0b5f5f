#include "core/cli/plugin_keys.hpp"

#include <algorithm>

#include "core/base/json.hpp"

namespace hexad::cli {

void set_plugin_key(nlohmann::ordered_json& config, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    throw CLI::ValidationError("KEY=VALUE", "'" + assignment + "' is no assignment, wanted for example vocab_size=12");
  const std::string text = assignment.substr(equals + 1);
  const auto value = try_parse_json<nlohmann::ordered_json>(text);
  std::string path = "/" + assignment.substr(0, equals);
  std::replace(path.begin(), path.end(), '.', '/');
  config[nlohmann::ordered_json::json_pointer(path)] = value.is_discarded() ? nlohmann::ordered_json(text) : value;
}

}  // namespace hexad::cli
