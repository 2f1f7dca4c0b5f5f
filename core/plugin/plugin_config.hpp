// The configuration that a plugin sees: what hexad_config stands for.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <hexad/abi.h>
#include <nlohmann/json.hpp>

namespace hexad::config {
struct Declaration;
}

namespace hexad::plugin {

// Where the value at a dotted path from the root of the configuration was written: "config.yaml:41:3", or "" if
// unknown.
using Locate = std::function<std::string(std::string_view path)>;

// The service by which a plugin read a key.
enum class ReadAs { i64, f64, boolean, text, json };

struct ConfigRead {
  std::string path;
  ReadAs as = ReadAs::json;
  nlohmann::ordered_json otherwise;  // the plugin's own default; null: none
};

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

  // Completes the section with the declared defaults of keys that are absent. A key that has its default need not be
  // read.
  void fill(const config::Declaration& declaration);

  // As it was given, and filled.
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

  // From now on reads are kept, with the default that the plugin passes: a text is looked at only then, for a plugin
  // may hold anything there if it knows that the key is written. Before the plugin has the handle.
  void record_reads() { records_ = true; }
  bool records_reads() const { return records_; }
  void note_read(std::string_view path, ReadAs as, Json otherwise) const;
  // By path; one for each default that was passed, a few of a key whose default changes all the time.
  std::vector<ConfigRead> reads() const;

  // One message per leaf of plugin_config that somebody wrote and nothing has read, with the nearest key that was asked
  // for: "config.yaml:41: loss_fn.plugin_config.clip_epss is not used by 'ppo_clip_c'. Did you mean clip_eps?"
  std::vector<std::string> unread_keys(const std::string& plugin_name) const;

 private:
  struct State {
    std::mutex mutex;
    std::set<std::string, std::less<>> asked;  // by leaf readers
    std::set<std::string, std::less<>> whole;  // by json_text: everything below counts
    std::deque<std::string> texts;
    std::map<std::string, std::vector<ConfigRead>, std::less<>> reads;
  };
  std::string full_path(std::string_view path, bool in_plugin_config) const;
  bool is_default(const std::string& leaf) const;
  std::string place(std::string_view path, bool in_plugin_config) const;

  std::string section_path_;
  Json section_;
  Locate locate_;
  std::set<std::string, std::less<>> filled_;  // leaves of plugin_config that have their declared default
  bool records_ = false;
  std::unique_ptr<State> state_;
};

}  // namespace hexad::plugin
