// A configuration file: YAML, inheritance, overrides (its lines that begin with "#: "), interpolation, defaults,
// schema, rules, and what is said about them. One that is found valid must be readable.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "app/config/commands.hpp"
#include "core/config/check.hpp"
#include "core/config/typed/run_config.hpp"
#include "tests/fuzz/input.hpp"

using namespace hexad;
namespace fs = std::filesystem;

namespace {

// A folder of this process with the file under test and one that it may inherit from.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("hexad_fuzz_config_" + std::to_string(::getpid()));
  Folder() {
    fs::create_directories(path);
    std::ofstream(path / "parent.yaml") << "grpo: {num_prompts_per_step: 2}\npolicy: {model_name: m}\n";
  }
  ~Folder() { fs::remove_all(path); }
};

std::vector<std::string> overrides_in(std::string_view text) {
  std::vector<std::string> overrides;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("#: ")) overrides.push_back(line.substr(3));
  return overrides;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Folder folder;
  const std::string_view text = fuzz::text_of(data, size);
  const fs::path file = folder.path / "config.yaml";
  std::ofstream(file, std::ios::binary) << text;
  std::optional<config::Loaded> loaded;
  fuzz::attempt([&] { loaded = config::load_with_defaults(file, overrides_in(text)); });
  if (!loaded) return 0;
  loaded->root.to_yaml();  // what is read can be written
  std::ostringstream said;
  if (config::print_problems(config::check(*loaded), file, /*json=*/true, said) == 0) config::run_config(*loaded);
  return 0;
}
