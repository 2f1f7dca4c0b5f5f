#include "core/config/dialect.hpp"

#include <algorithm>

namespace hexad::config {
namespace {

constexpr DialectSection kSections[] = {
    {"policy", "dtensor_cfg", "enabled", "dtensor"},
    {"policy", "megatron_cfg", "enabled", "megatron"},
    {"policy.generation", "vllm_cfg", "", "vllm_bridge"},
    {"policy.generation", "vllm_kwargs", "", "vllm_bridge"},
    {"policy.generation", "port_range_low", "", "vllm_bridge"},
    {"policy.generation", "port_range_high", "", "vllm_bridge"},
    {"policy.generation", "mcore_generation_config", "", "megatron"},
    {"policy.generation", "sglang_cfg", "", "sglang_bridge"},
    {"policy.generation", "sglang_kwargs", "", "sglang_bridge"},
    {"policy.generation", "trtllm_cfg", "", "trtllm"},
    {"policy.generation", "trtllm_kwargs", "", "trtllm"},
    {"policy.generation", "dynamo_cfg", "", "dynamo"},
};

constexpr std::string_view kEngines[] = {"megatron", "sglang", "trtllm", "dynamo"};

}  // namespace

std::span<const DialectSection> dialect_sections() { return kSections; }

bool is_foreign_engine(std::string_view name) { return std::ranges::find(kEngines, name) != std::end(kEngines); }

}  // namespace hexad::config
