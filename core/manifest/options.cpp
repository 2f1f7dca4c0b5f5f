#include "core/manifest/options.hpp"

#include <algorithm>

#include "lib/base/error.hpp"
#include "lib/base/json.hpp"

namespace hexad::plugin {
namespace {

using Json = nlohmann::ordered_json;

const Json* present(const Json& section, const char* key) {
  const auto found = section.find(key);
  return found == section.end() || found->is_null() ? nullptr : &*found;
}

[[noreturn]] void wrong(const char* key, const char* wanted, const Json& got) {
  fail(ErrorKind::config, "plugins.{} must be {}, got {}", key, wanted, json_text(got));
}

std::vector<std::string> texts(const Json& section, const char* key, const char* wanted) {
  const Json* list = present(section, key);
  if (!list) return {};
  const auto is_text = [](const Json& item) { return item.is_string(); };
  if (!list->is_array() || !std::all_of(list->begin(), list->end(), is_text)) wrong(key, wanted, *list);
  return list->get<std::vector<std::string>>();
}

bool flag(const Json& section, const char* key, bool otherwise) {
  const Json* value = present(section, key);
  if (!value) return otherwise;
  if (!value->is_boolean()) wrong(key, "true or false", *value);
  return value->get<bool>();
}

}  // namespace

Options options_from(const Json& section) {
  Options options;
  if (section.is_null()) return options;
  if (!section.is_object()) fail(ErrorKind::config, "plugins must be a section, got {}", json_text(section));
  options.enabled = flag(section, "enabled", options.enabled);
  options.allow_insecure_dirs = flag(section, "allow_insecure_dirs", options.allow_insecure_dirs);
  options.require_verified = flag(section, "require_verified", options.require_verified);
  if (const Json* folder = present(section, "record_dir")) {
    if (!folder->is_string()) wrong("record_dir", "a directory", *folder);
    options.record_dir = folder->get<std::string>();
  }
  if (const Json* steps = present(section, "record_steps")) {
    if (!steps->is_number_integer()) wrong("record_steps", "a number of steps", *steps);
    options.record_steps = steps->get<int64_t>();
  }
  for (const std::string& path : texts(section, "paths", "a list of directories")) options.paths.emplace_back(path);
  options.own_process = texts(section, "own_process", "a list of plugin names");
  if (const Json* pins = present(section, "pin")) {
    if (!pins->is_object()) wrong("pin", "a map from plugin name to sha256:<hex digits>", *pins);
    for (const auto& [name, digest] : pins->items()) {
      if (!digest.is_string() || !digest.get<std::string>().starts_with("sha256:")) {
        wrong("pin", "a map from plugin name to sha256:<hex digits>", *pins);
      }
      options.pin[name] = digest.get<std::string>();
    }
  }
  return options;
}

}  // namespace hexad::plugin
