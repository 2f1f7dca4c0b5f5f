#include "core/environment/make.hpp"

#include <algorithm>

#include "core/config/load/defaults.hpp"
#include "core/config/rules/check_keys.hpp"
#include "core/environment/arguments.hpp"
#include "core/environment/plugin_environment.hpp"
#include "core/environment/program/environment.hpp"
#include "core/environment/weighted_sum.hpp"
#include "lib/base/error.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

namespace hexad::environment {
namespace {

using Json = nlohmann::ordered_json;

// The key that says what kind of environment a section is of; "": none.
std::string kind_of(const std::string& name, const Json& section) {
  std::vector<std::string> kinds;
  for (const auto& entry : section.items()) {
    for (const char* key : {"plugin", "command", "python", "rewards", "type"}) {
      if (entry.key() == key && !entry.value().is_null()) kinds.push_back(entry.key());
    }
  }
  if (kinds.size() <= 1) return kinds.empty() ? "" : kinds[0];
  const std::string last = kinds.back();
  kinds.pop_back();
  fail(ErrorKind::config, "env.{}: has {}{} and {}: keep one", name, kinds.size() == 1 ? "both " : "", joined(kinds),
       last);
}

// What makes a section that has no other kind: `type`, or else its name.
std::string type_of(const std::string& name, const Json& section, const std::string& kind) {
  if (kind != "type") return name;
  if (!section.at("type").is_string())
    fail(ErrorKind::config, "env.{}.type: want the name of an environment, got {}", name,
         json_text(section.at("type")));
  return section.at("type").get<std::string>();
}

Json without_type(Json section) {
  if (section.is_object()) section.erase("type");
  return section;
}

// Of `type`, messages name it, and not the section that has its keys.
std::unique_ptr<Environment> make_built_in(const std::string& name, const Json& section, const std::string& kind,
                                           const std::vector<std::string>& plugins) {
  if (kind != "type") return make_environment(name, section, plugins);
  const std::string type = type_of(name, section, kind);
  try {
    return make_environment(type, without_type(section), plugins);
  } catch (const Error& error) {
    fail(error.kind(), "{}", said_of("env." + name, "type", error.what(), type));
  }
}

// The keys of a section that a plugin's name chooses.
void check_declared(const std::string& name, const Json& section, const config::Installed& plugin) {
  if (!plugin.declaration()) return;
  const config::Declaration& declaration = *plugin.declaration();
  for (const auto& entry : section.items()) {
    const std::string& key = entry.key();
    if (key == "plugin" || key == "type" || key == "plugin_config") continue;
    const config::Key* declared = declaration.find(key);
    if (!declared) declared = declaration.find("plugin_config." + key);
    if (!declared) {
      std::vector<std::string> known;
      for (const config::Key& each : declaration.keys) known.push_back(each.path);
      const std::string near = did_you_mean(key, known);
      fail(ErrorKind::config, "env.{}.{}: unknown key{}", name, key, near.empty() ? "; known: " + joined(known) : near);
    }
    const auto problem = config::value_problem(*declared, config::default_value(json_text(entry.value())));
    if (problem) fail(ErrorKind::config, "env.{}.{}: {}", name, key, *problem);
  }
}

// A part of a sum that names a plugin which is not there, or is of another kind.
void check_part_plugin(const std::string& part, const Json& plugin, const config::Catalog& catalog) {
  if (!plugin.is_string()) return;  // said where it is made
  const std::string why = catalog.why_missing(plugin::Kind::environment, plugin.get<std::string>());
  if (!why.empty()) fail(ErrorKind::config, "env.{}.plugin: {}", part, why);
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
  if (kind == "command" || kind == "python")
    return make_program_environment(name, section, services.interrupted, services.num_steps);
  if (kind == "rewards")
    return make_weighted_sum(
        name, section, [&](const std::string& part, const Json& arguments) { return make(part, arguments, services); });
  const std::string type = type_of(name, section, kind);
  const config::Catalog catalog(services.plugins.options());
  const config::Installed* plugin = catalog.installed(plugin::Kind::environment, type);
  if (!plugin) return make_built_in(name, section, kind, plugin_names(catalog));
  check_declared(name, section, *plugin);
  Json of_plugin = without_type(section);
  of_plugin["plugin"] = type;
  return make_of_plugin(name, of_plugin, services);
}

std::vector<std::string> plugin_names(const config::Catalog& catalog) {
  std::vector<std::string> names;
  for (const config::Installed& each : catalog.all()) {
    if (each.kind() == plugin::Kind::environment) names.push_back(each.name());
  }
  return names;
}

void check_section(const std::string& name, const Json& section, const config::Catalog& catalog) {
  const std::string kind = section.is_object() ? kind_of(name, section) : "";
  if (kind == "plugin" && !section.at("plugin").is_string())
    fail(ErrorKind::config, "env.{}.plugin: want the name of an environment plugin or a path, got {}", name,
         json_text(section.at("plugin")));
  if (kind == "plugin") return;
  if (kind == "command" || kind == "python") {
    program_settings(name, section);
  } else if (kind == "rewards") {
    make_weighted_sum(name, section, [&](const std::string& part, const Json& arguments) {
      check_section(part, arguments, catalog);
      if (arguments.is_object() && kind_of(part, arguments) == "plugin")
        check_part_plugin(part, arguments.at("plugin"), catalog);
      return nullptr;
    });
  } else {
    const std::string type = type_of(name, section, kind);
    const config::Installed* plugin = catalog.installed(plugin::Kind::environment, type);
    if (plugin)
      check_declared(name, section, *plugin);
    else
      make_built_in(name, section, kind, plugin_names(catalog));
  }
}

}  // namespace hexad::environment
