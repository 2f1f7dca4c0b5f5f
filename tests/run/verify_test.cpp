// Every first-party plugin, and the backend and generator of the SDK's examples, pass the conformance kit.
#include <doctest/doctest.h>

#include "tests/run/first_party.hpp"

namespace {

using plugin_test::Json;

// The plugin's files in a folder laid out as an installed one, with another default of one key in its manifest.
toy::fs::path with_default(const toy::TempDir& dir, const std::string& plugin, const std::string& key,
                           const Json& value) {
  const toy::fs::path built = toy::hexad().parent_path().parent_path() / "lib", plugins = dir / "lib/hexad/plugins";
  toy::fs::create_directories(plugins);
  if (toy::fs::exists(built / "libhexad_modeling.so") && !toy::fs::exists(dir / "lib/libhexad_modeling.so"))
    toy::fs::create_symlink(built / "libhexad_modeling.so", dir / "lib/libhexad_modeling.so");
  for (const std::string part : {".so", "_check.so"}) {
    const std::string file = "lib" + plugin + part;
    if (toy::fs::exists(built / "hexad/plugins" / file))
      toy::fs::copy_file(built / "hexad/plugins" / file, plugins / file);
  }
  const std::string name = "lib" + plugin + ".hexad.json";
  Json manifest = Json::parse(toy::read_text(built / "hexad/plugins" / name));
  manifest.at("config").at("keys").at(key).at("default") = value;
  std::ofstream(plugins / name) << manifest.dump();
  return plugins / ("lib" + plugin + ".so");
}

std::vector<toy::fs::path> first_party_plugins() {
  std::vector<toy::fs::path> libraries;
  for (const auto& entry :
       toy::fs::directory_iterator(toy::fs::path(toy::hexad()).parent_path().parent_path() / "lib/hexad/plugins")) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".so") && !name.ends_with("_check.so")) libraries.push_back(entry.path());
  }
  return libraries;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

// A run gets the default of the manifest, and a host that reads no declarations that of the plugin's code.
TEST_CASE("a default in a manifest that is not the one in the plugin's code fails the conformance kit by its key") {
  struct Changed {
    const char *plugin, *key, *read_as;
    Json value;
    const char* in_code;
  };
  const std::vector<Changed> changes = {
      {"megatron", "megatron_cfg.sequence_parallel", "megatron_cfg.sequence_parallel", true, "false"},
      {"dtensor", "dtensor_cfg.cpu_offload", "dtensor_cfg.cpu_offload", true, "false"},
      {"native", "native_cfg.kv_block_size", "native_cfg.kv_block_size", 32, "16"},
      {"clipped_pg", "ratio_clip_min", "ratio_clip_min", 0.25, "0.2"},
      {"countdown", "plugin_config.tag", "tag", "reply", "\"answer\""}};
  for (const Changed& change : changes) {
    CAPTURE(change.key);
    const toy::TempDir dir;
    const toy::fs::path library = with_default(dir, change.plugin, change.key, change.value);
    const toy::Ended run = toy::run({"plugin", "verify", library.string(), "--level", "3"});
    CHECK(run.code == 1);
    const std::string line =
        fmt::format("declared default: create reads {} with the default {}, and the manifest declares {}",
                    change.read_as, change.in_code, change.value.dump());
    CHECK_MESSAGE(toy::contains(run.out, line), run.out << run.err);
  }
}

TEST_CASE("every first-party plugin passes every level that runs without a GPU") {
  const std::vector<toy::fs::path> libraries = first_party_plugins();
  CHECK(libraries.size() >= 4);
  for (const toy::fs::path& library : libraries) {
    const toy::Ended run = toy::run({"plugin", "verify", library.string()});
    CHECK_MESSAGE(run.code == 0, run.out << run.err);
    for (const char* level : {"L1 descriptor ok", "L2 hosts      ok", "L3 lifecycle  ok", "L4 errors     ok",
                              "L5 numbers    ok", "L6 threads    ok"}) {
      CHECK_MESSAGE(run.out.find(level) != std::string::npos, run.out);
    }
  }
}

TEST_SUITE_END();
