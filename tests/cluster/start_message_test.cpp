// The key that a plugin receives is the key that is documented: every key that an installed plugin declares is looked up in
// the `start` message, absent and with other values than its default.
#include <doctest/doctest.h>

#include "core/cluster/start_workers.hpp"
#include "core/config/defaults.hpp"
#include "tests/config/support.hpp"

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
  const Json message = cluster::start_sections(loaded.root, run, {"", "", ""}, "m", "");
  switch (plugin.kind) {
    case plugin::Kind::backend: return message.at("policy");
    case plugin::Kind::generator: return message.at("generation");
    default: return message.at("loss_fn");
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
    const Node value = default_value(text);
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

void check_key(const Declaration& plugin, const Key& key) {
  const Overrides base = opened(plugin, key);
  const std::optional<Json> absent = value_at(section_of(plugin, base), key.path);
  if (key.status == Status::effective) {
    const std::optional<Json> wanted = documented(key);
    const bool is_left_out = !key.automatic.empty() || (key.default_yaml.empty() && key.first_of.empty());
    if (is_left_out) CHECK_MESSAGE(!absent, plugin.plugin << ": " << key.path << ": " << text_of(absent));
    if (wanted) CHECK_MESSAGE(absent == wanted, plugin.plugin << ": " << key.path << ": " << text_of(absent));
    if (!is_left_out) CHECK_MESSAGE(absent.has_value(), plugin.plugin << ": " << key.path);
  }
  if (!key.stands_for.empty()) return;  // its keys move: the test of model_overrides
  for (const std::string& value : other_values(key)) {
    Overrides with = base;
    with.push_back("++" + block_of(plugin) + "." + key.path + "=" + value);
    const std::optional<Json> got = value_at(section_of(plugin, with), key.path);
    CHECK_MESSAGE(got == default_value(value).to_json(),
                  plugin.plugin << ": " << key.path << "=" << value << ": " << text_of(got));
  }
}

}  // namespace

TEST_CASE("each key that a plugin declares reaches it, with its default where it is absent") {
  const Node nothing{Node::Map{}};
  Catalog catalog(nothing);
  size_t keys = 0;
  for (const Installed& each : catalog.all()) {
    CHECK_MESSAGE(each.problem.empty(), each.problem);
    if (!each.declaration) continue;
    for (const Key& key : each.declaration->keys) {
      if (is_map_of_keys(*each.declaration, key) || is_switch(*each.declaration, key)) continue;
      check_key(*each.declaration, key);
      ++keys;
    }
  }
  CHECK(keys > 150);
}
