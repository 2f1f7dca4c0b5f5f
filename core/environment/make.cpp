#include "core/environment/make.hpp"

#include "lib/base/error.hpp"
#include "lib/base/joined.hpp"
#include "lib/base/json.hpp"
#include "core/environment/arguments.hpp"
#include "core/environment/plugin_environment.hpp"
#include "core/environment/program/environment.hpp"
#include "core/environment/program/settings.hpp"
#include "core/environment/weighted_sum.hpp"

namespace hexad::environment {
namespace {

using Json = nlohmann::ordered_json;

// The key that says what kind of environment a section is of; "": none.
std::string kind_of(const std::string& name, const Json& section) {
  std::vector<std::string> kinds;
  for (const auto& entry : section.items()) {
    for (const char* key : {"plugin", "command", "rewards", "type"}) {
      if (entry.key() == key && !entry.value().is_null()) kinds.push_back(entry.key());
    }
  }
  if (kinds.size() <= 1) return kinds.empty() ? "" : kinds[0];
  const std::string last = kinds.back();
  kinds.pop_back();
  fail(ErrorKind::config, "env.{}: has {}{} and {}: keep one", name, kinds.size() == 1 ? "both " : "", joined(kinds),
       last);
}

// Messages of a built-in name it, and not the section that has its keys.
std::unique_ptr<Environment> make_of_type(const std::string& name, const Json& section) {
  if (!section.at("type").is_string())
    fail(ErrorKind::config, "env.{}.type: want the name of a built-in environment, got {}", name,
         json_text(section.at("type")));
  const std::string type = section.at("type").get<std::string>();
  Json arguments = section;
  arguments.erase("type");
  try {
    return make_environment(type, arguments);
  } catch (const Error& error) {
    fail(error.kind(), "{}", said_of("env." + name, "type", error.what(), type));
  }
}

std::unique_ptr<Environment> make_of_plugin(const std::string& name, const Json& section, const Services& services) {
  try {
    return make_plugin_environment(name, section, services.plugins, services.locate, services.interrupted);
  } catch (const Error& error) {
    const std::string path = "env." + name, what = error.what();
    if (what.find(path) != what.npos) throw;
    fail(error.kind(), "{}: {}", path, what);
  }
}

}  // namespace

std::unique_ptr<Environment> make(const std::string& name, const Json& section, const Services& services) {
  const std::string kind = section.is_object() ? kind_of(name, section) : "";
  if (kind == "plugin") return make_of_plugin(name, section, services);
  if (kind == "command") return make_program_environment(name, section, services.interrupted);
  if (kind == "type") return make_of_type(name, section);
  if (kind == "rewards")
    return make_weighted_sum(
        name, section, [&](const std::string& part, const Json& arguments) { return make(part, arguments, services); });
  return make_environment(name, section);
}

void check_section(const std::string& name, const Json& section) {
  const std::string kind = section.is_object() ? kind_of(name, section) : "";
  if (kind == "plugin") return;
  if (kind == "command") {
    program_settings(name, section);
  } else if (kind == "rewards") {
    make_weighted_sum(name, section, [](const std::string& part, const Json& arguments) {
      check_section(part, arguments);
      return nullptr;
    });
  } else if (kind == "type") {
    make_of_type(name, section);
  } else {
    make_environment(name, section);
  }
}

}  // namespace hexad::environment
