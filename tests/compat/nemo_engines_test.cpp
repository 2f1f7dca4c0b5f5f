// Engines of NeMo-RL's for which there is no plugin, and sections of theirs.
#include "compat/nemo_rl/engines.hpp"
#include "tests/compat/support.hpp"

using namespace compat_test;

TEST_CASE("a generator that does not run here is native, beside settings of its own") {
  for (const std::string engine : {"trtllm", "dynamo"}) {
    const Overrides overrides = {"++policy.generation.backend=" + engine,
                                 "++policy.generation." + engine + "_cfg={a: 1}"};
    const auto resolved = resolve_text(overrides);
    CHECK(resolved.root.as_string("policy.generation.backend") == "native");
    CHECK(has_notice(resolved, "policy.generation.backend",
                     "'" + engine + "' means native here: that engine does not run"));
    CHECK(has_notice(resolved, "policy.generation." + engine + "_cfg",
                     "that generator does not run here: no generator " + engine + " is installed"));
    // Core by itself knows neither.
    check_says(config_test::resolve_error(overrides), "policy.generation." + engine + "_cfg: unknown key");
  }
  CHECK(resolve_text({"++policy.generation.backend=megatron"}).root.as_string("policy.generation.backend") == "native");
  CHECK(resolve_text({"++policy.generation.backend=mine"}).root.as_string("policy.generation.backend") == "mine");
}

TEST_CASE("a section whose plugin is installed is that plugin's own, and its engine's name is the plugin's") {
  const Overrides unknown = {"++policy.generation.backend=sglang",
                             "++policy.generation.sglang_cfg={sglang_server_config: {x: 1}}"};
  check_says(resolve_error(unknown), "policy.generation.sglang_cfg.sglang_server_config.x: unknown key");
  for (const std::string engine : {"vllm", "sglang"}) {
    const auto resolved = resolve_text({"++policy.generation.backend=" + engine});
    CHECK(resolved.root.as_string("policy.generation.backend") == engine);
  }
  // Each section of the table that a plugin here declares belongs to a plugin of the table's name.
  for (const hexad::config::OtherSection& section : hexad::compat::nemo_rl_sections()) {
    const std::string path = fmt::format("{}.{}", section.block, section.section);
    const hexad::config::Key* key = config_test::every_schema().find(path);
    if (!key || key->path != path || section.section.starts_with("port_range")) continue;
    INFO(path);
    CHECK(key->plugin.starts_with(section.plugin));
  }
}
