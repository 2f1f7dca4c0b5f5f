// docs/config.md is what the schema says, docs/plugins what the plugins declare.
#include "app/config/reference.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/config/reference_plugin.hpp"
#include "core/config/schema/schema.hpp"
#include "tests/config/support.hpp"

using namespace hexad::config;
using config_test::check_says;

namespace {

namespace fs = std::filesystem;

fs::path docs() {
  const char* source = std::getenv("HEXAD_SOURCE_DIR");
  return fs::path(source ? source : ".") / "docs";
}

void check_page(const fs::path& page, const std::string& wanted) {
  if (std::getenv("HEXAD_UPDATE_DOCS")) {
    fs::create_directories(page.parent_path());
    std::ofstream(page) << wanted;
  }
  std::ostringstream text;
  text << std::ifstream(page).rdbuf();
  CHECK_MESSAGE(text.str() == wanted, page.string() << " is out of date: run tools/update_config_docs.sh");
}

Installed installed(const std::string& kind, const std::string& name, const std::string& config) {
  const std::string text = fmt::format(
      R"({{"format": 1, "kind": "{}", "name": "{}", "version": "1.0.0", "library": "lib{}.so",
          "abi": {{"major": 1, "min_host_minor": 0}}, "arch": "x86_64-linux-gnu", "config": {}}})",
      kind, name, name, config);
  hexad::plugin::Candidate candidate;
  candidate.manifest = hexad::plugin::parse_manifest(text, "m.json");
  candidate.manifest_path = "m.json";
  return Installed(std::move(candidate));
}

// Keys of every form.
const char* const kForms = R"json({
  "named": ["probing"],
  "select": {"kind": "backend", "when": {"probe_cfg.enabled": true}},
  "keys": {
    "probe_cfg": {"type": "map or null", "meaning": "the probe"},
    "probe_cfg.enabled": {"type": "bool", "default": false, "meaning": "train with it"},
    "probe_cfg.size": {"type": "int or null", "default": null, "min": 1, "max": 9, "meaning": "its size",
                       "renamed_from": ["probe_cfg.length"]},
    "probe_cfg.mode": {"type": "text", "default": "a", "choices": ["a", "b"], "not_built": ["c"],
                       "read_as": {"text": "b", "from": ["bee"], "note": "that is its name here"}, "meaning": "a | b"},
    "probe_cfg.layers": {"type": "int", "default": {"model": "num_hidden_layers"}, "meaning": "layers"},
    "probe_cfg.clip": {"type": "float", "default": "${max_grad_norm}", "meaning": "norm"},
    "probe_cfg.extra": {"type": "map of int", "default": {}, "meaning": "numbers by name"},
    "probe_cfg.old": {"type": "any", "accepted": "nothing is old here", "meaning": ""},
    "probe_cfg.lora": {"type": "map", "refused": "LoRA", "meaning": "adapters"},
    "probe_cfg.lora.enabled": {"type": "bool", "default": false, "refused": "LoRA", "meaning": "train them"},
    "probe_cfg.lora.dim": {"type": "int", "default": 8, "meaning": "rank"},
    "probe_cfg.optimizer": {"type": "map", "optional": true, "meaning": "the optimizer"},
    "probe_cfg.optimizer.lr": {"type": "float", "default": {"first_of": ["optimizer.kwargs.lr"], "else": 5e-06},
                               "above": 0, "meaning": "learning rate"},
    "probe_cfg.optimizer.min_lr": {"type": "float", "default": {"auto": "a tenth of lr"}, "meaning": "lowest rate"},
    "probe_kwargs": {"type": "list of text", "default": [], "meaning": "further arguments"},
    "plugin_config.seed": {"type": "int", "meaning": "a seed"}
  },
  "lets": {"ranks": "world.ranks"},
  "facts": {"copy_ranks": "probe_cfg.size", "schedule": {"when": "has(probe_cfg.optimizer)", "lr": "1.0"}},
  "rules": [{"require": "lets.ranks % probe_cfg.size == 0", "key": "probe_cfg.size", "when": "has(probe_cfg.size)",
             "message": "{probe_cfg.size + 0} does not divide {lets.ranks}"}],
  "reads": ["precision"]
})json";

}  // namespace

TEST_CASE("the reference pages are generated from the schema and from what plugins declare") {
  const Catalog catalog(hexad::yaml::Node(hexad::yaml::Node::Map{}));
  const std::vector<const Installed*> plugins = plugins_with_pages(catalog);
  CHECK(!plugins.empty());
  check_page(docs() / "config.md", reference_markdown(plugins));
  std::vector<std::string> pages;
  for (const Installed* each : plugins) {
    pages.push_back(each->name() + ".md");
    check_page(docs() / "plugins" / pages.back(), plugin_reference_markdown(*each));
  }
  for (const auto& entry : fs::directory_iterator(docs() / "plugins")) {
    const std::string name = entry.path().filename().string();
    CHECK_MESSAGE(std::ranges::find(pages, name) != pages.end(), name << " is of no plugin: remove it");
  }
}

TEST_CASE("what plugins of the engine's own folders declare can be read") {
  const Catalog catalog(hexad::yaml::Node(hexad::yaml::Node::Map{}));
  for (const Installed& each : catalog.all()) {
    if (each.candidate().trusted) CHECK_MESSAGE(each.problem().empty(), each.problem());
  }
}

TEST_CASE("the reference page has every key") {
  const std::string text = reference_markdown({});
  for (const Key& key : core_schema().keys()) {
    const std::string name = key.path.substr(key.path.rfind('.') + 1);
    const bool shown =
        text.find("`" + name + "`") != std::string::npos || text.find("## " + key.path + "\n") != std::string::npos;
    CHECK_MESSAGE(shown, key.path);
  }
}

TEST_CASE("a plugin's page has a row for each key, in the form of the engine's own") {
  const std::string page = plugin_reference_markdown(installed("backend", "probe", kForms));
  const auto says = [&](const std::string& line) { check_says("\n" + page, "\n" + line + "\n"); };
  says("# probe");
  says("`policy.backend: probe` or `probing` chooses it, and so does `policy.probe_cfg.enabled: true`.");
  says("## policy.probe_cfg\n\nthe probe.\n\n| key | type | default | meaning |\n|---|---|---|---|");
  says("| `enabled` | bool | `false` | train with it. |");
  says("| `size` | int or null | `null` | its size; at least 1, at most 9; older name: `policy.probe_cfg.length`. |");
  says("| `mode` | str | `a` | a \\| b; one of a, b; not available: c; read as b: bee. |");
  says("| `layers` | int | `num_hidden_layers` of the model | layers. |");
  says("| `clip` | float | `${policy.max_grad_norm}` | norm. |");
  says("| `extra` | map of int | `{}` | numbers by name. |");
  says("| `old` | any |  | *Accepted:* nothing is old here. |");
  says("## policy.probe_cfg.lora\n\nadapters. *Not available.*");
  says("| `enabled` | bool | `false` | train them. *Not available:* only `false`, `null`. |");
  says("| `dim` | int | `8` | rank. *With that feature.* |");
  says(
      "## policy.probe_cfg.optimizer\n\n"
      "the optimizer. Its keys have their defaults where it is written, and only there.");
  says("| `lr` | float | `optimizer.kwargs.lr`, else `5e-06` | learning rate; above 0. |");
  says("| `min_lr` | float | auto | lowest rate; auto: a tenth of lr. |");
  says("## policy\n\nkeys beside those of the engine.");
  says("| `probe_kwargs` | list of str | `[]` | further arguments. |");
  says("## policy.plugin_config\n\nkeys of the plugin's own.");
  says("| `seed` | int |  | a seed. |");
  says("- `copy_ranks`: `probe_cfg.size`");
  says("- `schedule`: lr `1.0`, where `has(probe_cfg.optimizer)`");
  says("- `lets.ranks`: `world.ranks`");
  says(
      "- `probe_cfg.size`: `lets.ranks % probe_cfg.size == 0`, where `has(probe_cfg.size)`, else the error "
      "`{probe_cfg.size + 0} does not divide {lets.ranks}`");
  says("`precision`");
  CHECK(page.find("m.json") == std::string::npos);  // the same on every machine
}

TEST_CASE("the pages of losses and environments name their blocks, and the index lists them") {
  const char* keys = R"({"keys": {"clip": {"type": "float", "default": 0.2, "meaning": "bound"}}})";
  check_says(plugin_reference_markdown(installed("loss", "probe", keys)), "\n## loss_fn\n");
  check_says(plugin_reference_markdown(installed("loss", "dpo", keys)), "\n## dpo\n");
  const Installed environment =
      installed("environment", "probe", R"({"keys": {"plugin_config.port": {"type": "int", "meaning": "its port"}}})");
  check_says(plugin_reference_markdown(environment), "\n## `env.<name>.plugin_config`\n");
  check_says(reference_markdown({&environment}),
             "\n| [probe](plugins/probe.md) | environment | `env.<name>.plugin_config` |\n");
}

TEST_CASE("a plugin's keys as JSON") {
  const Installed probe = installed("backend", "probe", kForms);
  const auto json = [&](const std::string& path) {
    for (const Key& key : plugin_keys(*probe.declaration())) {
      if (key.path == "policy." + path) return key_json(key).dump();
    }
    return std::string("absent");
  };
  CHECK(json("probe_cfg.enabled") == R"({"key":"policy.probe_cfg.enabled","type":"bool","default":false,)"
                                     R"("meaning":"train with it","status":"effective"})");
  check_says(json("probe_cfg.size"), R"("default":null)");
  check_says(json("probe_cfg.optimizer.lr"), R"("default":{"first_of":["optimizer.kwargs.lr"],"else":5e-06})");
  check_says(json("probe_cfg.optimizer.min_lr"), R"("default":{"auto":"a tenth of lr"})");
  check_says(json("probe_cfg.layers"), R"("default":{"model":"num_hidden_layers"})");
  check_says(json("probe_cfg.lora.enabled"), R"("status":"refused","note":"LoRA")");
  CHECK(json("plugin_config.seed").find("default") == std::string::npos);
}

TEST_CASE("every key is described once, and says what becomes of it") {
  std::vector<std::string> seen;
  for (const Key& key : core_schema().keys()) {
    CHECK_MESSAGE(std::ranges::find(seen, key.path) == seen.end(), key.path << " is there twice");
    seen.push_back(key.path);
    CHECK_MESSAGE((!key.meaning.empty() || !key.note.empty()), key.path);
    if (key.path.find('.') != std::string::npos) {
      CHECK_MESSAGE(core_schema().find(key.path.substr(0, key.path.rfind('.'))), key.path << " has no section");
    }
  }
}
