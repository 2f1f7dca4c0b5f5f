// The SDK's examples, each a project of its own, take the place of all three plugins through the configuration alone.
#include <doctest/doctest.h>

#include "tests/run/first_party.hpp"

using first_party::source;
using toy::TempDir;

namespace {

// Builds sdk/examples/<name> into dir/<name> and returns its plugin folder.
std::string build(const TempDir& dir, const std::string& name) {
  const std::string folder = (dir / name).string(), log = folder + ".log";
  const std::string command =
      fmt::format("cmake -S {}/sdk/examples/{} -B {} -G Ninja > {} 2>&1 && cmake --build {} >> {} 2>&1", source(), name,
                  folder, log, folder, log);
  const int status = std::system(command.c_str());
  REQUIRE_MESSAGE(status == 0, command << "\n" << toy::read_text(log));
  return folder + "/lib/hexad/plugins";
}

std::vector<std::string> train(const TempDir& dir, const std::vector<std::string>& plugins) {
  std::vector<std::string> overrides = {"grpo.max_num_steps=3", "checkpointing.save_period=3", "++cluster.device=cpu"};
  overrides.insert(overrides.begin(), plugins.begin(), plugins.end());
  return first_party::train(source() + "/configs/quickstart.yaml", dir, overrides);
}

}  // namespace

TEST_CASE("backend, generator and loss of other folders replace the first-party ones") {
  const TempDir dir;
  const std::string paths =
      fmt::format("++plugins.paths=[{}, {}, {}]", build(dir, "backend"), build(dir, "generator"), build(dir, "loss_c"));
  const std::vector<std::string> ours = {paths,
                                         "++policy.backend=unigram",
                                         "++policy.plugin_config={vocab_size: 12}",
                                         "policy.generation.backend=unigram_sampler",
                                         "++policy.generation.plugin_config={vocab_size: 12}",
                                         "++loss_fn.plugin=ppo_clip_c",
                                         "++loss_fn.plugin_config={clip_eps: 0.3}"};
  const toy::Ended run = toy::run(train(dir, ours));
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK(run.err.find("backend   unigram 1.0.0 (" + dir.path().string()) != std::string::npos);
  CHECK(run.err.find("generator unigram_sampler 1.0.0 (" + dir.path().string()) != std::string::npos);
  CHECK(run.err.find("loss      ppo_clip_c 1.0.0 (" + dir.path().string()) != std::string::npos);
  const std::string weights = toy::read_text(dir / "checkpoints/step_3/policy/weights/unigram.f32");
  CHECK(weights.size() == 12 * sizeof(float));
  CHECK(weights != std::string(12 * sizeof(float), '\0'));  // it has trained

  // A library that is not what its manifest says is refused, with the reason.
  const auto library = dir / "loss_c/lib/hexad/plugins/libppo_clip_c.so";
  toy::fs::resize_file(library, toy::fs::file_size(library) - 1);
  const toy::Ended refused = toy::run(train(dir, ours));
  INFO(refused.out << refused.err);
  CHECK(refused.code == 3);
  CHECK(refused.err.find("libppo_clip_c.so") != std::string::npos);
  CHECK(refused.err.find("bytes, manifest says") != std::string::npos);
}
