#include "core/environment/make.hpp"

#include "core/base/error.hpp"
#include "core/base/joined.hpp"
#include "core/base/json.hpp"
#include "core/environment/plugin_environment.hpp"
#include "core/environment/program_environment.hpp"
#include "core/environment/weighted_sum.hpp"

namespace hexad::environment {
namespace {

using Json = nlohmann::ordered_json;

bool has(const Json& section, const char* key) { return section.contains(key) && !section.at(key).is_null(); }

}  // namespace

std::unique_ptr<Environment> make(const std::string& name, const Json& section, const Services& services) {
  if (!section.is_object()) return make_environment(name, section);
  std::vector<std::string> kinds;
  for (const char* key : {"plugin", "command", "rewards", "type"}) {
    if (has(section, key)) kinds.emplace_back(key);
  }
  if (kinds.size() > 1) fail(ErrorKind::config, "env.{}: want one of {}, got all of them", name, joined(kinds));
  if (has(section, "plugin"))
    return make_plugin_environment(name, section, services.plugins, services.locate, services.interrupted);
  if (has(section, "command")) return make_program_environment(name, section, services.interrupted);
  if (has(section, "rewards")) return make_weighted_sum(name, section, services);
  Json arguments = section;
  if (!has(section, "type")) return make_environment(name, arguments);
  if (!section.at("type").is_string())
    fail(ErrorKind::config, "env.{}.type: want the name of a built-in environment, got {}", name,
         json_text(section.at("type")));
  arguments.erase("type");
  return make_environment(section.at("type").get<std::string>(), arguments);
}

}  // namespace hexad::environment
