// The key that a plugin receives is the key that is documented: every key that an installed plugin declares is looked
// up in the `start` message, absent and with other values than its default.
#include <doctest/doctest.h>

#include "core/cluster/process/start_workers.hpp"
#include "core/config/load/defaults.hpp"
#include "core/config/rules/check_keys.hpp"
#include "tests/config/support.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace config_test;
using namespace hexad;
using namespace hexad::config;

namespace {

using cluster::Json;

// What chooses the plugin in a configuration.
Overrides chooses(const Declaration& plugin) {
  switch (plugin.kind) {
    case plugin::Kind::backend: return {"++policy.backend=" + plugin.plugin};
    case plugin::Kind::generator: return {"++policy.generation.backend=" + plugin.plugin};
    case plugin::Kind::loss: return {"++loss_fn.plugin=" + plugin.plugin};
    case plugin::Kind::environment: return {"++env.tested.plugin=" + plugin.plugin};
  }
  return {};
}

// The block of the message that the plugin is made with.
Json section_of(const Declaration& plugin, Overrides overrides) {
  const Overrides choice = chooses(plugin);
  overrides.insert(overrides.begin(), choice.begin(), choice.end());
  const bool pairs = plugin.plugin == "dpo";
  const Files files("a.yaml",
                    pairs ? "policy: {model_name: m}\ndata: {train: {dataset_name: arithmetic}}\ndpo: {}\n" : kValid);
  const Loaded loaded = load_with_defaults(files / "a.yaml", overrides);
  const RunConfig run = run_config(loaded);
  if (plugin.kind == plugin::Kind::environment) return run.env.at("tested");
  const auto start = cluster::start_of_all(loaded.root, run, {"", "", ""}, "m", "");
  switch (plugin.kind) {
    case plugin::Kind::backend: return start.policy;
    case plugin::Kind::generator: return start.generation;
    default: return start.loss_fn;
  }
}

std::string block_of(const Declaration& plugin) {
  switch (plugin.kind) {
    case plugin::Kind::backend: return "policy";
    case plugin::Kind::generator: return "policy.generation";
    case plugin::Kind::loss: return plugin.plugin == "dpo" ? "dpo" : "loss_fn";
    case plugin::Kind::environment: return "env.tested";
  }
  return "";
}

// The value at a path of the message; nothing where it is absent.
std::optional<Json> value_at(const Json& section, const std::string& path) {
  std::string pointer = "/" + path;
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  const Json::json_pointer at(pointer);
  return section.contains(at) ? std::optional(section.at(at)) : std::nullopt;
}

std::string text_of(const std::optional<Json>& value) { return value ? value->dump() : "absent"; }

// Values, as YAML, that the key takes and that are not its default: two, of a boolean one.
std::vector<std::string> other_values(const Key& key) {
  std::vector<std::string> candidates(key.choices.rbegin(), key.choices.rend());
  const auto add = [&](Kinds kind, std::initializer_list<const char*> texts) {
    if (key.kinds & kind) candidates.insert(candidates.end(), texts.begin(), texts.end());
  };
  add(kBool, {"true", "false"});
  add(kInt, {"1", "7", "2", "64"});
  add(kFloat, {"0.5", "0.25", "7.5"});
  if (key.choices.empty()) add(kText, {"other", "another"});
  add(kList, {key.element_kinds & kText ? "[other]" : "[1]", key.element_kinds & kText ? "[another]" : "[2]"});
  if (key.open) add(kMap, {"{other: 1}", "{other: 2}"});
  std::vector<std::string> values;
  for (const std::string& text : candidates) {
    const yaml::Node value = default_value(text);
    const bool inside = !value.is_number() || (value.as_double() >= key.minimum && value.as_double() <= key.maximum);
    if (inside && !same_value(value, default_value(key.default_yaml)) && values.size() < 2) values.push_back(text);
  }
  return values;
}

bool is_map_of_keys(const Declaration& plugin, const Key& key) {
  return !key.open &&
         std::ranges::any_of(plugin.keys, [&](const Key& k) { return k.path.starts_with(key.path + "."); });
}

bool is_switch(const Declaration& plugin, const Key& key) {
  return std::ranges::any_of(plugin.select, [&](const auto& s) { return s.first == key.path; });
}

// The sections above a key that are there only when they are written.
Overrides opened(const Declaration& plugin, const Key& key) {
  const size_t dot = key.path.rfind('.');
  const Key* section = dot == key.path.npos ? nullptr : plugin.find(key.path.substr(0, dot));
  return section && section->optional ? Overrides{"++" + block_of(plugin) + "." + section->path + "={}"} : Overrides{};
}

// What the declaration says that an absent key comes to; nothing where it follows other keys.
std::optional<Json> documented(const Key& key) {
  if (!key.first_of.empty() || !key.model_member.empty() || key.default_yaml.find("${") != std::string::npos)
    return std::nullopt;
  return key.default_yaml.empty() ? std::nullopt : std::optional(default_value(key.default_yaml).to_json());
}

bool is_left_out(const Key& key) {
  return !key.automatic.empty() || (key.default_yaml.empty() && key.first_of.empty());
}

// Where the message of a configuration without the key differs from what the declaration says; "" if it does not.
std::string default_difference(const Declaration& plugin, const Key& key, Overrides overrides = {}) {
  if (key.status != Status::effective) return "";
  const Overrides above = opened(plugin, key);
  overrides.insert(overrides.end(), above.begin(), above.end());
  const std::optional<Json> absent = value_at(section_of(plugin, overrides), key.path), wanted = documented(key);
  const bool agrees = is_left_out(key) ? !absent : wanted ? absent == wanted : absent.has_value();
  return agrees ? "" : fmt::format("{}: {}: {}", plugin.plugin, key.path, text_of(absent));
}

void check_key(const Declaration& plugin, const Key& key) {
  CHECK(default_difference(plugin, key) == "");
  if (!key.stands_for.empty()) return;  // its keys move: the test of model_overrides
  for (const std::string& value : other_values(key)) {
    Overrides with = opened(plugin, key);
    with.push_back("++" + block_of(plugin) + "." + key.path + "=" + value);
    const std::optional<Json> got = value_at(section_of(plugin, with), key.path);
    CHECK_MESSAGE(got == default_value(value).to_json(),
                  plugin.plugin << ": " << key.path << "=" << value << ": " << text_of(got));
  }
}

// The manifest with another default of one key, in a folder that comes before the engine's own.
void write_changed(const plugin_test::PluginFolder& folder, const Installed& installed, const Key& key,
                   const Json& value) {
  const std::filesystem::path file = installed.candidate().manifest_path;
  Json manifest = Json::parse(plugin_test::read_text(file));
  manifest.at("config").at("keys").at(key.path)["default"] = value;
  std::ofstream(folder.path() / file.filename()) << manifest.dump();
}

}  // namespace

TEST_CASE("each key that a plugin declares reaches it, with its default where it is absent") {
  const yaml::Node nothing{yaml::Node::Map{}};
  Catalog catalog(nothing);
  size_t keys = 0;
  for (const Installed& each : catalog.all()) {
    CHECK_MESSAGE(each.problem().empty(), each.problem());
    if (!each.declaration()) continue;
    for (const Key& key : each.declaration()->keys) {
      if (is_map_of_keys(*each.declaration(), key) || is_switch(*each.declaration(), key)) continue;
      check_key(*each.declaration(), key);
      ++keys;
    }
  }
  CHECK(keys > 150);
}

// What the case above is worth: it fails for every key of which the run fills in another value than the one that the
// plugin's page tells of.
TEST_CASE("a default that is not the declared one is a difference of its key") {
  const yaml::Node nothing{yaml::Node::Map{}};
  Catalog catalog(nothing);
  const plugin_test::PluginFolder folder;
  const Overrides changed = {"++plugins.paths=[" + folder.path().string() + "]"};
  size_t keys = 0;
  for (const Installed& each : catalog.all()) {
    if (!each.declaration()) continue;
    const Declaration& plugin = *each.declaration();
    for (const Key& key : plugin.keys) {
      const bool has_none = is_left_out(key) && key.automatic.empty() && key.model_member.empty();
      if (key.status != Status::effective || (!documented(key) && !has_none)) continue;  // or it follows other keys
      if (is_map_of_keys(plugin, key) || is_switch(plugin, key)) continue;
      // One that the key takes; no declaration has a map of free keys as a default.
      const std::vector<std::string> others = other_values(key);
      const auto other = std::ranges::find_if(others, [&](const std::string& text) {
        const yaml::Node value = default_value(text);
        return !value.is_map() && !value_problem(key, value, true);
      });
      if (other == others.end()) continue;
      const Json value = default_value(*other).to_json();
      write_changed(folder, each, key, value);
      CHECK(default_difference(plugin, key, changed) ==
            fmt::format("{}: {}: {}", plugin.plugin, key.path, value.dump()));
      ++keys;
    }
    std::filesystem::remove(folder.path() / each.candidate().manifest_path.filename());
  }
  CHECK(keys > 150);
}
