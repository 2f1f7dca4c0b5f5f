// policy.generation as this generator reads it. docs/config.md says what each key means.
#pragma once
#include <optional>
#include <string>

#include "plugins/server_bridge/settings.hpp"
#include "plugins/vllm_bridge/fp8/recipe.hpp"

namespace hexad::vllm {

struct Settings {
  bridge::Settings common;
  std::string logprobs_mode;
  std::optional<fp8::Recipe> fp8;  // of weights
  std::string refit_address;       // where servers meet this process for NCCL: an IPv4 address of this host
};

Settings read_settings(const sdk::Call& call, const sdk::Config& config);

}  // namespace hexad::vllm
