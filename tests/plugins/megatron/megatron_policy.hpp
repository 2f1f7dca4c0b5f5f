// Models and configurations for the megatron backend.
#pragma once
#include "tests/plugins/backend/divisible_model.hpp"
#include "tests/plugins/backend/harness.hpp"

namespace backend_test {

inline json megatron_model(const std::string& family) { return divisible_model(family); }

// `sizes`: keys of megatron_cfg.
inline json megatron_policy(const std::filesystem::path& model, const json& sizes,
                            const std::string& precision = "float32") {
  json result = policy(model, precision);
  result.erase("dtensor_cfg");
  result["megatron_cfg"] = sizes;
  return result;
}

}  // namespace backend_test
