// The check library of http_reward: what a judge is made of, and variables of the environment, as create takes them.
#include <hexad/check.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "judge.hpp"

namespace {

using Json = nlohmann::json;

struct Check {
  const hexad_check_host* host;
  Json keys;  // plugin_config

  void error(const std::string& key, const std::string& message) const {
    host->finding(host->ctx, HEXAD_CHECK_ERROR, ("plugin_config." + key).c_str(), message.c_str());
  }
  std::string text(const Json& section, const char* key) const {
    const Json value = section.value(key, Json());
    return value.is_string() ? value.get<std::string>() : "";
  }

  void variable(const std::string& key, const std::string& name) const {
    const char* const value = name.empty() ? "?" : std::getenv(name.c_str());
    if (!value || !*value)
      error(key, "the variable " + name + " of the environment is not set. Export it before hexad train");
  }
  void variables() const {
    variable("api_key_env", text(keys, "api_key_env"));
    const Json headers = keys.value("headers_env", Json());
    for (const auto& [header, name] : headers.items())
      if (name.is_string()) variable("headers_env." + header, name.get<std::string>());
  }

  // What is wrong with the keys together the rules say.
  void judge() const {
    const Json section = keys.value("judge", Json());
    if (!section.is_object()) return;
    http_reward::JudgeSettings settings;
    settings.model = text(section, "model"), settings.prompt = text(section, "prompt");
    settings.score_regex = text(section, "score_regex"), settings.score_json = text(section, "score_json");
    if (settings.model.empty() || settings.prompt.empty()) return;
    if (settings.score_regex.empty() == settings.score_json.empty()) return;
    try {
      const http_reward::Judge can_be_made(settings);
    } catch (const hexad::sdk::Error& error) {
      const std::string what = error.what(), key = what.substr(0, what.find(": "));
      this->error(key, key.size() < what.size() ? what.substr(key.size() + 2) : what);
    }
  }
};

}  // namespace

extern "C" int32_t hexad_plugin_check_v1(const hexad_check_host* host, const char* input) {
  try {
    const Json keys = Json::parse(input).at("section").value("plugin_config", Json::object());
    const Check check{host, keys.is_object() ? keys : Json::object()};
    check.variables();
    check.judge();
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}
