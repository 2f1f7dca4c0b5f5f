// How families name and configure their experts: one row each. Defaults are those of transformers' configuration
// classes.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lib/model/family/config_fields.hpp"
#include "lib/model/family/topk_options.hpp"

namespace hexad::model {

struct MoeFamily {
  // Published weight names: <block>gate.weight, <block>experts.N.<gate>.weight, <block><shared>.gate_proj.weight ...
  const char* block = "mlp.";
  const char *gate = "gate_proj", *up = "up_proj", *down = "down_proj";
  const char* shared = nullptr;        // null: no shared experts
  const char* shared_scale = nullptr;  // null: their output is not gated
  const char* expert_bias = nullptr;   // null: none
  // Keys of config.json.
  const char* num_experts_key = "num_experts";
  const char* intermediate_key = "moe_intermediate_size";
  int64_t num_experts, topk;                          // when the keys are absent
  int64_t intermediate = 0, shared_intermediate = 0;  // likewise; 0: required
};

// What a config.json says about the experts.
struct MoeConfig {
  const MoeFamily* family = nullptr;
  int64_t num_experts = 0;
  int64_t intermediate_size = 0;         // of one expert
  int64_t shared_intermediate_size = 0;  // of the shared experts together; 0: none
  TopkOptions routing;
  std::vector<bool> layers;  // [num_layers]: has experts (others are dense)
};

MoeConfig parse_moe(const MoeFamily& family, const ConfigFields& fields, int64_t num_layers);

extern const MoeFamily kQwen2Moe, kQwen3Moe, kMixtral, kDeepseekV3;

}  // namespace hexad::model
