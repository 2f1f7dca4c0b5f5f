#include "plugins/server_bridge/arguments.hpp"

#include <algorithm>
#include <hexad/services.hpp>

namespace hexad::bridge {

using Json = nlohmann::ordered_json;

std::string word_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string option_of(std::string name, const std::string& before) {
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + before + name;
}

void add_valued_option(std::vector<std::string>& to, const std::string& name, const Json& value) {
  to.push_back(option_of(name));
  if (value.is_array() && std::none_of(value.begin(), value.end(), [](const Json& v) { return v.is_structured(); })) {
    for (const Json& element : value) to.push_back(word_of(element));
  } else {
    to.push_back(word_of(value));
  }
}

void refuse_kwargs(const Json& kwargs, const std::string& prefix, const std::set<std::string>& reserved) {
  if (!kwargs.is_object()) return;
  // A server that starts again would serve random weights.
  if (kwargs.value("load_format", Json()) == "dummy") {
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "%s_kwargs.load_format: got 'dummy'. A server that starts again would serve random weights; leave the "
              "key out: a model without weights is started with those of the first update",
              prefix.c_str());
  }
  for (const auto& [name, value] : kwargs.items()) {
    if (!reserved.contains(name)) continue;
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "%s_kwargs.%s: the bridge sets it. To use a server of your own, start it and name it in "
              "%s_cfg.server_urls",
              prefix.c_str(), name.c_str(), prefix.c_str());
  }
}

void refuse_several_devices(const Json& cfg, const Json& kwargs, const Json& env_vars, const std::string& prefix,
                            const std::string& server, std::span<const char* const> sizes) {
  if (env_vars.is_object() && env_vars.contains("CUDA_VISIBLE_DEVICES")) return;
  for (const char* key : sizes) {
    const bool given = kwargs.is_object() && kwargs.contains(key);
    const Json& from = given ? kwargs : cfg;
    const Json size = from.is_object() ? from.value(key, Json()) : Json();
    if (size.is_null() || size == 1) continue;
    sdk::fail(HEXAD_INVALID_ARGUMENT,
              "%s%s.%s: got %s, wanted 1: %s is given its rank's one CUDA device. For more, name them all in "
              "%s_cfg.env_vars.CUDA_VISIBLE_DEVICES",
              prefix.c_str(), given ? "_kwargs" : "_cfg", key, size.dump().c_str(), server.c_str(), prefix.c_str());
  }
}

std::map<std::string, std::string> with_variables(std::map<std::string, std::string> environment,
                                                  const Json& env_vars) {
  if (env_vars.is_object())
    for (const auto& [name, value] : env_vars.items()) environment[name] = word_of(value);
  return environment;
}

}  // namespace hexad::bridge
