// The configuration that a plugin sees: what hexad_config stands for.
#pragma once
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <hexad/abi.h>
#include <nlohmann/json.hpp>

namespace hexad::plugin {

// Where the value at a dotted path from the root of the configuration was written: "config.yaml:41:3", or "" if
// unknown.
using Locate = std::function<std::string(std::string_view path)>;

// A section ("loss_fn", "policy", "policy.generation") as a plugin reads it: a path is looked up in the section's
// `plugin_config` first, then in the section itself. Null counts as absent. Lookups are thread-safe. Movable until
// handed to a plugin; must stay in place until that instance is destroyed.
class PluginConfig {
 public:
  using Json = nlohmann::ordered_json;

  // `section_path` is the section's place in the whole configuration and begins names in messages.
  PluginConfig(std::string section_path, Json section, Locate locate = {});

  const hexad_config* handle() const { return reinterpret_cast<const hexad_config*>(this); }
  static const PluginConfig& from(const hexad_config* config) { return *reinterpret_cast<const PluginConfig*>(config); }

  // As it was given.
  const Json& section() const { return section_; }
  // The value, or null. Marks the path as read.
  const Json* find(std::string_view path) const;
  // The subtree as JSON text ("null" where that is written), or a null pointer; marks all of it as read. The text lives
  // as long as this object.
  const char* json_text(std::string_view path) const;
  // A text value kept alive as long as this object.
  const char* keep(std::string text) const;

  // "config.yaml:41:3: loss_fn.plugin_config.clip_eps must be a number, got text 'abc'".
  std::string type_error(std::string_view path, std::string_view wanted, const Json& got) const;

  // One message per leaf of plugin_config that nothing has read, with the nearest key that was asked for:
  // "config.yaml:41: loss_fn.plugin_config.clip_epss is not used by 'ppo_clip_c'. Did you mean clip_eps?"
  std::vector<std::string> unread_keys(const std::string& plugin_name) const;

 private:
  struct State {
    std::mutex mutex;
    std::set<std::string, std::less<>> asked;  // by leaf readers
    std::set<std::string, std::less<>> whole;  // by json_text: everything below counts
    std::deque<std::string> texts;
  };
  std::string place(std::string_view path, bool in_plugin_config) const;

  std::string section_path_;
  Json section_;
  Locate locate_;
  std::unique_ptr<State> state_;
};

}  // namespace hexad::plugin
