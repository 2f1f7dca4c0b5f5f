// Part 4 of the ABI gate: plugins built from a release's own headers give, on today's host, the numbers of that release.
#include <algorithm>

#include "core/plugin/host_table.hpp"
#include "tests/abi/built_plugin.hpp"
#include "tests/abi/scripts.hpp"

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
