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

}  // namespace first_party
