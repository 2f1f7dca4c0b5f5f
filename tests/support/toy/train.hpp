// `hexad train` of the toy's config, and what it leaves in its folder.
#pragma once
#include <fstream>

#include "tests/support/toy/program.hpp"

namespace toy {

using Arguments = std::vector<std::string>;

// The arguments of `hexad train` of the toy's config in `dir` with overrides.
inline Arguments train(const TempDir& dir, Arguments overrides = {}) {
  const auto config = dir.write("toy.yaml", config_text(dir.path()));
  overrides.insert(overrides.begin(), {"train", config.string()});
  return overrides;
}

// Each line of a .jsonl file.
inline std::vector<plugin_test::Json> lines(const fs::path& path) {
  std::vector<plugin_test::Json> found;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) found.push_back(plugin_test::Json::parse(line));
  return found;
}

// The bytes of the policy in a checkpoint; "" if there is none.
inline std::string weights(const TempDir& dir, int step) {
  return read_text(dir / fmt::format("checkpoints/step_{}/policy/weights/toy.bin", step));
}

// What tests of `hexad train` name all the time: using namespace toy::names.
namespace names {
using plugin_test::contains;
using plugin_test::Json;
using toy::all_gone;
using toy::Arguments;
using toy::Ended;
using toy::lines;
using toy::Program;
using toy::TempDir;
using toy::train;
using toy::weights;
}  // namespace names

}  // namespace toy
