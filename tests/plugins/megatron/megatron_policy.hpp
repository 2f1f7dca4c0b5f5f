// Models and configurations for the megatron backend.
#pragma once
#include "tests/plugins/backend/divisible_model.hpp"
#include "tests/plugins/backend/harness.hpp"

namespace backend_test {

inline json megatron_model(const std::string& family) { return divisible_model(family); }

// megatron_cfg with `keys`, and with what they leave open as a test of numbers wants it: routers that learn, in the
// model's type, gradients in fp32, experts cut as the rest; a sharding strategy is in force.
inline json megatron_section(const json& keys) {
  json section = {{"freeze_moe_router", false}, {"distributed_data_parallel_config", {{"grad_reduce_in_fp32", true}}}};
  if (keys.contains("tensor_model_parallel_size"))
    section["expert_tensor_parallel_size"] = keys["tensor_model_parallel_size"];
  json& gradients = section["distributed_data_parallel_config"];
  for (const auto& [name, value] : keys.items()) {
    if (name == "distributed_data_parallel_config")
      gradients.update(value);
    else
      section[name] = value;
  }
  if (!section.contains("moe_router_dtype")) section["moe_router_dtype"] = nullptr;
  if (gradients.contains("data_parallel_sharding_strategy") && !gradients.contains("use_megatron_fsdp"))
    gradients["use_megatron_fsdp"] = true;
  return section;
}

// `sizes`: keys of megatron_cfg.
inline json megatron_policy(const std::filesystem::path& model, const json& sizes,
                            const std::string& precision = "float32") {
  json result = policy(model, precision);
  result.erase("dtensor_cfg");
  result["megatron_cfg"] = megatron_section(sizes);
  return result;
}

}  // namespace backend_test
