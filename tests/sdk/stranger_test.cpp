// Someone else's backend, made and checked with an installed tree alone: no source of the engine, no LibTorch.
#include <doctest/doctest.h>

#include "tests/sdk/sdk.hpp"

using namespace sdk_test;
using plugin_test::contains;

namespace {

// Three keys and a rule more than the template has.
constexpr const char* kKeys = R"(
  plugin_config.tensor_ranks: {type: int, default: 1, min: 1, meaning: ranks that share a layer}
  plugin_config.mode: {type: text, default: fast, choices: [fast, exact], meaning: how sums are made}
  plugin_config.margin: {type: float or null, default: null, above: 0, meaning: of the loss}
facts:
  copy_ranks: plugin_config.tensor_ranks
rules:
  - require: world.train_ranks % plugin_config.tensor_ranks == 0
    key: plugin_config.tensor_ranks
    message: "{plugin_config.tensor_ranks} does not divide the {world.train_ranks} ranks"
)";

}  // namespace

TEST_CASE("a backend with keys and a rule of its own is checked from an installed tree, in an empty folder") {
  const TempDir dir;
  must(dir,
       fmt::format("for part in sdk app; do cmake --install {} --component $part --prefix tree; done", build_dir()));
  must(dir, "mkdir work && cd work && ../tree/bin/hexad plugin new backend mine");
  std::ofstream(dir / "work/mine/keys.yaml", std::ios::app) << kKeys + 1;
  must(dir, "cmake -S work/mine -B work/build -DHexadSDK_DIR=$PWD/tree/lib/cmake/HexadSDK && cmake --build work/build");
  dir.write("work/a.yaml",
            "policy:\n  model_name: m\n  backend: mine\n  plugin_config: {vocab_size: 12, mode: exakt}\n"
            "data: {train: {dataset_name: arithmetic}}\ngrpo: {num_prompts_per_step: 32}\n"
            "cluster: {gpus_per_node: 4}\nplugins: {paths: [" +
                (dir / "work/build/lib/hexad/plugins").string() + "]}\n");
  const auto said = [&](const std::string& overrides) {
    return sh(dir, "cd work && ../tree/bin/hexad config check a.yaml " + overrides).text;
  };
  CHECK_MESSAGE(contains(said(""),
                         "a.yaml:4:35: error: policy.plugin_config.mode: got 'exakt', wanted one of fast, "
                         "exact; did you mean exact?"),
                said(""));
  const std::string divides = said("policy.plugin_config.mode=exact ++policy.plugin_config.tensor_ranks=3");
  CHECK_MESSAGE(contains(divides, "policy.plugin_config.tensor_ranks: 3 does not divide the 4 ranks"), divides);
  CHECK_MESSAGE(
      contains(said("++policy.plugin_config.margn=1"), "policy.plugin_config.margn: unknown key; did you mean"),
      said("++policy.plugin_config.margn=1"));
  CHECK(contains(said("policy.plugin_config.mode=exact"), "a.yaml: valid"));
  const std::string info = must(dir, "tree/bin/hexad plugin info $PWD/work/build/lib/hexad/plugins/libmine.so");
  for (const char* key : {"plugin_config.tensor_ranks", "plugin_config.mode", "plugin_config.margin"})
    CHECK_MESSAGE(contains(info, key), info);
}

TEST_CASE("a file of keys that makes no sense is an error of the plugin's own build") {
  const TempDir dir;
  const toy::Ended made = toy::run({"plugin", "new", "backend", "mine", "--into", dir.path().string()});
  REQUIRE_MESSAGE(made.code == 0, made.err);
  std::ofstream(dir / "mine/keys.yaml", std::ios::app) << "  plugin_config.mode: {type: txt}\n";
  const Shell build =
      sh(dir, fmt::format("cmake -S mine -B build -DHexadSDK_DIR={}/lib/cmake/HexadSDK && cmake --build build",
                          prefix().string()));
  CHECK(build.code != 0);
  CHECK_MESSAGE(contains(build.text, "keys.plugin_config.mode: type: got 'txt', wanted bool, int, float"), build.text);
}
