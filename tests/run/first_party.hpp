// Runs of the first-party plugins from the checkout's own configs.
#pragma once
#include "tests/support/toy/program.hpp"

namespace first_party {

inline std::string source() { return std::getenv("HEXAD_SOURCE_DIR"); }

// `hexad train CONFIG` that leaves its logs and checkpoints in `dir`.
inline std::vector<std::string> train(const std::string& config, const toy::TempDir& dir,
                                      const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> arguments = {"train", config, "++logger.log_dir=" + (dir / "logs").string(),
                                        "++checkpointing.checkpoint_dir=" + (dir / "checkpoints").string()};
  arguments.insert(arguments.end(), overrides.begin(), overrides.end());
  return arguments;
}

// Overrides: training alone, on the CPU, without validation and checkpoints.
inline std::vector<std::string> training_alone() {
  return {"++checkpointing.enabled=false", "++grpo.val_at_start=false", "++grpo.val_at_end=false",
          "++grpo.val_period=0", "++cluster.device=cpu"};
}

// Overrides: the plugin of replay_generator.c generates, what `rollouts` holds.
inline std::vector<std::string> replaying(const toy::fs::path& rollouts) {
  static const plugin_test::PluginFolder folder;
  static const toy::fs::path library = [] {
    const toy::fs::path built =
        folder.compile("replay", "", toy::read_text(source() + "/tests/run/replay_generator.c"));
    folder.write_manifest(built, "replay", {{"kind", "generator"}, {"version", "1.0.0"}});
    return built;
  }();
  return {fmt::format("++plugins.paths=[{}]", library.parent_path().string()), "policy.generation.backend=replay",
          fmt::format("++policy.generation.plugin_config={{file: {}}}", rollouts.string())};
}

inline std::vector<std::string> both(std::vector<std::string> first, const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace first_party
