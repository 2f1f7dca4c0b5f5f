#include "compat/nemo_rl/engines.hpp"

namespace hexad::compat {
namespace {

constexpr config::OtherSection kSections[] = {
    {"policy", "dtensor_cfg", "enabled", "dtensor"},
    {"policy", "megatron_cfg", "enabled", "megatron"},
    {"policy.generation", "vllm_cfg", "", "vllm"},
    {"policy.generation", "vllm_kwargs", "", "vllm"},
    {"policy.generation", "port_range_low", "", "vllm"},
    {"policy.generation", "port_range_high", "", "vllm"},
    {"policy.generation", "sglang_cfg", "", "sglang"},
    {"policy.generation", "sglang_kwargs", "", "sglang"},
    {"policy.generation", "mcore_generation_config", "", "megatron"},
    {"policy.generation", "trtllm_cfg", "", "trtllm"},
    {"policy.generation", "trtllm_kwargs", "", "trtllm"},
    {"policy.generation", "dynamo_cfg", "", "dynamo"},
};

constexpr std::string_view kEngines[] = {"megatron", "trtllm", "dynamo"};

}  // namespace

std::span<const config::OtherSection> nemo_rl_sections() { return kSections; }

std::span<const std::string_view> nemo_rl_engines() { return kEngines; }

}  // namespace hexad::compat
