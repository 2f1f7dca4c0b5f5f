#include "compat/roll/roll.hpp"

#include "lib/yaml/file.hpp"

namespace hexad::config::roll {

std::optional<yaml::Node> deepspeed_preset(const std::string& path) {
  static const std::pair<const char*, const char*> presets[] = {
      {"deepspeed_zero", "{stage: 0}"},
      {"deepspeed_zero2", "{stage: 2}"},
      {"deepspeed_zero3", "{stage: 3}"},
      {"deepspeed_zero3_cpuoffload", "{stage: 3, offload_optimizer: {device: cpu}}"},
  };
  const std::string name = path.substr(path.rfind('/') + 1);
  for (const auto& [known, zero] : presets) {
    if (name != known) continue;
    return yaml::read_text(name + ": {zero_optimization: " + zero + "}", "preset " + name);
  }
  return std::nullopt;
}

}  // namespace hexad::config::roll
