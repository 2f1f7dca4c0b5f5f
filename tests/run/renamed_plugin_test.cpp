// The engine knows no plugin by its name: megatron under another name and with another section is the same plugin.
#include <doctest/doctest.h>

#include "tests/run/run_steps.hpp"

using first_party::both;
using first_party::source;
using toy::TempDir;

namespace {

namespace fs = toy::fs;

// As many letters as the name that it replaces, and with its last four: compilers store a text in parts that overlap.
const std::string kName = "megatron", kCopy = "copytron";

std::string renamed(std::string text) {
  for (size_t at = text.find(kName); at != text.npos; at = text.find(kName, at)) text.replace(at, kName.size(), kCopy);
  return text;
}

// What a build of plugins/megatron gives where each "megatron" in its sources is a "copytron": names, sections, texts.
// The folder is laid out as an installed one; returns that of the plugins.
fs::path make_copy(const TempDir& dir) {
  const fs::path built = toy::hexad().parent_path().parent_path() / "lib", plugins = dir / "lib/hexad/plugins";
  fs::create_directories(plugins);
  fs::create_symlink(built / "libhexad_modeling.so", dir / "lib/libhexad_modeling.so");
  for (const char* part : {"libmegatron.so", "libmegatron_check.so"}) {
    const std::string bytes = renamed(toy::read_text(built / "hexad/plugins" / part));
    std::ofstream(plugins / renamed(part), std::ios::binary) << bytes;
  }
  const fs::path library = plugins / "libcopytron.so";
  auto manifest = plugin_test::Json::parse(renamed(toy::read_text(built / "hexad/plugins/libmegatron.hexad.json")));
  manifest["sha256"] = plugin_test::digest_of(library);
  manifest["check"]["sha256"] = plugin_test::digest_of(plugins / "libcopytron_check.so");
  std::ofstream(plugins / "libcopytron.hexad.json") << manifest.dump();
  return plugins;
}

// Three steps with tensor parallelism on two ranks: their samples and metrics, but for times and memory.
std::vector<nlohmann::json> trained(const TempDir& dir, const std::string& backend, const fs::path& plugins) {
  const std::vector<std::string> overrides = {
      "grpo.max_num_steps=3",
      "cluster.gpus_per_node=2",
      "~policy.megatron_cfg",
      "++plugins.paths=[" + plugins.string() + "]",
      "++policy.backend=" + backend,
      "++policy." + backend + "_cfg={tensor_model_parallel_size: 2, optimizer: {lr: 2.0e-3, clip_grad: 0.5}}"};
  const toy::Ended run = toy::run(
      first_party::train(source() + "/configs/quickstart.yaml", dir, both(first_party::training_alone(), overrides)),
      "", 900);
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  std::vector<nlohmann::json> steps = first_party::steps_of(dir);
  for (nlohmann::json& step : steps) {
    for (auto each = step.begin(); each != step.end();) {
      const bool metric = each.key().starts_with("train/") && !each.key().starts_with("train/memory_");
      each = metric || each.value().is_array() ? std::next(each) : step.erase(each);
    }
  }
  return steps;
}

}  // namespace

TEST_CASE("megatron under another name, with its section under another, trains to the same bits") {
  const TempDir copy, first, second;
  const fs::path plugins = make_copy(copy);
  // Each read of its `create` is of a key of the section's new name, with the default that is declared for it.
  const toy::Ended verified = toy::run({"plugin", "verify", (plugins / "libcopytron.so").string(), "--level", "3"});
  CHECK_MESSAGE(verified.code == 0, verified.out << verified.err);
  CHECK_MESSAGE(toy::contains(verified.out, "L3 lifecycle  ok"), verified.out << verified.err);

  const std::vector<nlohmann::json> want = trained(first, "megatron", plugins), got = trained(second, kCopy, plugins);
  REQUIRE(want.size() == 3);
  REQUIRE(got.size() == 3);
  for (size_t i = 0; i < want.size(); ++i) {
    for (const char* metric : {"train/reward", "train/loss", "train/grad_norm"}) CHECK(want[i].contains(metric));
    CHECK(got[i] == want[i]);
  }
  CHECK(want[0].at("train/loss") != want[2].at("train/loss"));
}

TEST_CASE("what is said about the keys of a plugin under another name is the same but for the name") {
  const TempDir copy;
  const fs::path plugins = make_copy(copy);
  const auto said = [&](const std::string& backend, const std::string& keys) {
    return toy::run({"config", "check", source() + "/configs/quickstart.yaml", "cluster.gpus_per_node=4",
                     "++plugins.paths=[" + plugins.string() + "]", "~policy.megatron_cfg",
                     "++policy." + backend + "_cfg={enabled: true, " + keys + "}",
                     "++policy.dtensor_cfg.enabled=false"});
  };
  for (const std::string keys :
       {"tensor_model_parallel_size: 3", "tensor_model_paralel_size: 2", "rank_order: tp-cp", "moe_router_dtype: fp16",
        "pipeline_model_parallel_layout: tt|tL, pipeline_model_parallel_size: 2", "optimizer: {optimizer: muon}",
        "sequence_parallel: 2"}) {
    CAPTURE(keys);
    const toy::Ended want = said(kName, keys), got = said(kCopy, keys);
    CHECK_MESSAGE(want.code == 2, want.out << want.err);
    CHECK(got.code == want.code);
    CHECK(got.out + got.err == renamed(want.out + want.err));
  }
}
