// Part 4 of the ABI gate: plugins built from a release's own headers give the numbers of that release on today's host,
// and take the configuration that they took.
#include <algorithm>

#include "core/plugin/host/table.hpp"
#include "tests/abi/built_plugin.hpp"
#include "tests/abi/scripts.hpp"
#include "tests/config/support.hpp"

using namespace abi_test;
using namespace hexad::plugin;
namespace fs = std::filesystem;

namespace {

const Json kLossConfig = {
    {"scale", 0.7}, {"boost", 2}, {"clamp", true}, {"form", "squared"}, {"nested", {{"a", {1, 2}}}}};
const Json kTableConfig = {{"vocab_size", 4}};
const Json kEnvironmentConfig = {{"scale", 0.75}, {"unscorable", "??"}};

const Json& config_of(Kind kind) {
  return kind == Kind::loss ? kLossConfig : kind == Kind::environment ? kEnvironmentConfig : kTableConfig;
}

fs::path frozen_folder() { return folder_from("HEXAD_SOURCE_DIR") / "tests/abi/frozen"; }

std::vector<std::string> releases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(frozen_folder()))
    if (entry.is_directory()) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  REQUIRE_MESSAGE(!names.empty(), frozen_folder() << " holds no release");
  return names;
}

// Bitwise: the shortest decimal that reads back as the same number stands for it, -0.0 included.
void check_recorded(const std::string& release, const std::string& kind, const Json& got) {
  const std::string text = got.dump(1) + "\n";
  const fs::path recorded = frozen_folder() / release / (kind + ".json");
  const fs::path made = folder_from("HEXAD_BUILD_DIR") / "tests/abi" / release / (kind + ".json");
  std::ofstream(made) << text;
  const bool same = plugin_test::read_text(recorded) == text;
  CHECK_MESSAGE(same, recorded << " differs from " << made);
}

// The block of a configuration that holds a plugin's keys, and the key of it that chooses the plugin.
std::pair<std::string, std::string> place_of(Kind kind) {
  switch (kind) {
    case Kind::backend: return {"policy", "backend"};
    case Kind::generator: return {"policy.generation", "backend"};
    case Kind::loss: return {"loss_fn", "plugin"};
    case Kind::environment: return {"env.tested", "plugin"};
  }
  return {};
}

// What is said of a run that chooses the plugin, a line each.
std::vector<std::string> said_of_run(const BuiltPlugin& built, Kind kind, const std::string& name,
                                     const config_test::Overrides& more) {
  const auto [block, key] = place_of(kind);
  config_test::Overrides overrides = {"++plugins.paths=[" + built.folder().string() + "]",
                                      fmt::format("++{}.{}={}", block, key, name)};
  overrides.insert(overrides.end(), more.begin(), more.end());
  const config_test::Files files("a.yaml", config_test::kValid);
  std::vector<std::string> lines;
  for (const auto& problem : hexad::config::check(hexad::config::load_with_defaults(files / "a.yaml", overrides)))
    lines.push_back(fmt::format("{}: {}: {}", problem.is_error() ? "error" : "notice", problem.key, problem.message));
  return lines;
}

}  // namespace

TEST_CASE("frozen plugins give the recorded numbers") {
  for (const std::string& release : releases()) {
    INFO(release);
    for (const Kind kind : kKinds) {
      const std::string name(kind_name(kind));
      if (kind == Kind::environment && release == "v1.0-rc1") continue;  // came with 1.1
      const BuiltPlugin built(release, kind, "frozen_" + name);
      check_recorded(release, name, run_script(built.load(), config_of(kind)));
    }
  }
}

TEST_CASE("keys of plugins whose manifests declare none are handed over unchecked, and one line says so") {
  for (const std::string& release : releases()) {
    INFO(release);
    for (const Kind kind : kKinds) {
      if (kind == Kind::environment && release == "v1.0-rc1") continue;
      const std::string name = "frozen_" + std::string(kind_name(kind)), own = place_of(kind).first + ".plugin_config";
      const BuiltPlugin built(release, kind, name);
      CHECK(said_of_run(built, kind, name, {}) == std::vector<std::string>{});
      CHECK(said_of_run(built, kind, name, {"++" + own + ".any={thing: 1}", "++" + own + ".more=x"}) ==
            std::vector<std::string>{
                fmt::format("notice: {}: is not checked: the manifest of '{}' declares no keys", own, name)});
    }
  }
}

// The types of a service say nothing of what it does: only this part can see a change of meaning.
TEST_CASE("a service that changes its meaning under an unchanged header is noticed") {
  const BuiltPlugin built(releases().back(), Kind::loss, "frozen_loss");
  const Json before = run_script(built.load(), kLossConfig);
  hexad_host changed = *host_table(nullptr);
  const LoadedPlugin plugin = built.load_on(&changed);
  CHECK(run_script(plugin, kLossConfig) == before);
  changed.deadline_ns = [](hexad_call*) -> int64_t { return 0; };  // "none" was INT64_MAX
  CHECK(run_script(plugin, kLossConfig) != before);
}
