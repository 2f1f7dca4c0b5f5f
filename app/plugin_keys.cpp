#include "app/plugin_keys.hpp"

#include "app/verify/assignment.hpp"

namespace hexad::cli {

void set_plugin_key(nlohmann::ordered_json& config, const std::string& assignment) {
  if (!plugin::assign(config, assignment))
    throw CLI::ValidationError("KEY=VALUE", "'" + assignment + "' is no assignment, wanted for example vocab_size=12");
}

}  // namespace hexad::cli
