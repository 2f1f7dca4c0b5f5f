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

// A key and a rule more for a plugin of any kind.
constexpr const char* kWidth = R"(
  plugin_config.width: {type: int, default: 3, min: 1, meaning: how wide}
rules:
  - require: plugin_config.width % 2 == 1
    key: plugin_config.width
    message: "{plugin_config.width} is even"
)";

// Installs the engine and the SDK into dir/tree.
void install_tree(const TempDir& dir) {
  must(dir,
       fmt::format("for part in sdk app; do cmake --install {} --component $part --prefix tree; done", build_dir()));
}

// The same without one plugin of the engine's own.
void install_bare_tree(const TempDir& dir) {
  install_tree(dir);
  must(dir, "ls tree/lib/hexad/plugins/*.hexad.json && rm -r tree/lib/hexad/plugins && mkdir tree/lib/hexad/plugins");
  const std::string list = must(dir, "tree/bin/hexad plugin list");
  for (const char* plugin : {"megatron", "dtensor", "native", "vllm_bridge", "clipped_pg", "countdown"})
    REQUIRE_MESSAGE(!contains(list, plugin), list);
}

}  // namespace

TEST_CASE("a backend with keys and a rule of its own is checked from an installed tree, in an empty folder") {
  const TempDir dir;
  install_tree(dir);
  must(dir, "mkdir work && cd work && ../tree/bin/hexad plugin new backend mine");
  std::ofstream(dir / "work/mine/keys.yaml", std::ios::app) << kKeys + 1;
  must(dir, "cmake -S work/mine -B work/build -DHexadSDK_DIR=$PWD/tree/lib/cmake/HexadSDK && cmake --build work/build");
  dir.write("work/a.yaml",
            "policy:\n  model_name: owner/m\n  backend: mine\n  plugin_config: {vocab_size: 12, mode: exakt}\n"
            "data: {train: {dataset_name: arithmetic, env_name: exact_answer}}\ngrpo: {num_prompts_per_step: 32}\n"
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

TEST_CASE("strangers of every kind are checked where no plugin of the engine's own is installed") {
  const TempDir dir;
  install_bare_tree(dir);
  std::string paths;
  for (const char* kind : {"backend", "generator", "loss_c", "environment"}) {
    must(dir, fmt::format("tree/bin/hexad plugin new {0} my_{0}", kind));
    std::ofstream(dir / fmt::format("my_{}/keys.yaml", kind), std::ios::app) << kWidth + 1;
    must(dir, fmt::format("cmake -S my_{0} -B my_{0}/build -DHexadSDK_DIR=$PWD/tree/lib/cmake/HexadSDK && "
                          "cmake --build my_{0}/build && cp my_{0}/build/lib/hexad/plugins/* tree/lib/hexad/plugins",
                          kind));
  }
  dir.write("a.yaml",
            "policy:\n  model_name: owner/m\n  backend: my_backend\n  plugin_config: {vocab_size: 12}\n"
            "  generation:\n    backend: my_generator\n    plugin_config: {vocab_size: 12}\n"
            "loss_fn: {plugin: my_loss_c}\nenv: {mine: {plugin: my_environment}}\n"
            "data: {train: {dataset_name: arithmetic, env_name: mine}}\ngrpo: {num_prompts_per_step: 32}\n");
  const auto check = [&](const std::string& overrides) {
    return sh(dir, "tree/bin/hexad config check a.yaml " + overrides);
  };
  const Shell valid = check("");
  CHECK_MESSAGE(valid.code == 0, valid.text);
  CHECK_MESSAGE(contains(valid.text, "a.yaml: valid"), valid.text);
  const plugin_test::Json shown =
      plugin_test::Json::parse(must(dir, "tree/bin/hexad config show a.yaml --json loss_fn.plugin_config.width=5"));
  for (const std::string block : {"policy", "policy.generation", "loss_fn", "env.mine"}) {
    CAPTURE(block);
    const std::string own = block + ".plugin_config.";
    const auto says = [&](const std::string& override, const std::string& words) {
      const Shell said = check("++" + own + override);
      CHECK(said.code == 2);
      CHECK_MESSAGE(contains(said.text, words), said.text);
    };
    says("width=4", "error: " + own + "width: 4 is even");
    says("width=0", "error: " + own + "width: got int 0, wanted at least 1");
    says("width=wide", "error: " + own + "width: got text 'wide', wanted an integer");
    says("widht=3", "error: " + own + "widht: unknown key; did you mean " + own + "width?");
    std::string pointer = "/" + own + "width";
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    CHECK(shown.at(plugin_test::Json::json_pointer(pointer)) == (block == "loss_fn" ? 5 : 3));
  }
  for (const char* kind : {"backend", "generator", "loss_c", "environment"}) {
    const std::string info = must(dir, fmt::format("tree/bin/hexad plugin info my_{}", kind));
    CHECK_MESSAGE(contains(info, "plugin_config.width"), info);
  }
}

TEST_CASE("a section of NeMo-RL's whose plugin is not installed is told of, and an error where it is switched on") {
  const TempDir dir;
  install_bare_tree(dir);
  must(dir, "tree/bin/hexad plugin new backend mine");
  must(dir, "cmake -S mine -B build -DHexadSDK_DIR=$PWD/tree/lib/cmake/HexadSDK && cmake --build build");
  dir.write("a.yaml",
            "policy:\n  model_name: owner/m\n  plugin_config: {vocab_size: 12}\n"
            "  megatron_cfg: {enabled: false, tensor_model_parallel_size: 2}\n  dtensor_cfg: {enabled: false}\n"
            "  generation: {vllm_cfg: {tensor_parallel_size: 2}}\n"
            "data: {train: {dataset_name: arithmetic, env_name: exact_answer}}\ngrpo: {num_prompts_per_step: 32}\n"
            "plugins: {paths: [build/lib/hexad/plugins]}\n");
  const auto check = [&](const std::string& overrides) {
    return sh(dir, "tree/bin/hexad config check a.yaml " + overrides);
  };
  const Shell off = check("++policy.backend=mine");
  CHECK_MESSAGE(off.code == 0, off.text);
  for (const char* line : {"a.yaml:4:3: notice: policy.megatron_cfg: not read: the backend megatron is not installed",
                           "a.yaml:6:16: notice: policy.generation.vllm_cfg: that generator does not run here: no "
                           "generator vllm is installed"})
    CHECK_MESSAGE(contains(off.text, line), off.text);
  CHECK_MESSAGE(!contains(off.text, "dtensor"), off.text);  // its switch alone, and off

  for (const std::string backend : {"megatron", "dtensor"}) {
    const std::string key = "policy." + backend + "_cfg.enabled";
    const Shell on = check(key + "=true");
    CHECK_MESSAGE(on.code == 2, on.text);
    CHECK_MESSAGE(
        contains(on.text, "error: " + key + ": backend " + backend + " is not installed: `hexad plugin list` " +
                              "shows what is, and where it is looked for"),
        on.text);
  }
  const Shell none = check("");
  CHECK_MESSAGE(none.code == 2, none.text);
  CHECK_MESSAGE(contains(none.text, "error: policy.backend: no backend: name a plugin in policy.backend"), none.text);
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
