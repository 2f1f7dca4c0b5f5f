// How families name and configure their experts: one row each. Defaults are those of transformers' configuration
// classes.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "modeling/family/config_fields.hpp"
#include "modeling/moe/topk_routing.hpp"

namespace hexad::modeling {

struct MoeFamily {
  // Published weight names: <block>gate.weight, <block>experts.N.<gate>.weight, <block><shared>.gate_proj.weight ...
  const char* block;
  const char *gate, *up, *down;
  const char* shared;        // null: no shared experts
  const char* shared_scale;  // null: their output is not gated
  const char* expert_bias;   // null: none
  // Keys of config.json.
  const char* num_experts_key;
  const char* intermediate_key;
  int64_t num_experts, topk, intermediate, shared_intermediate;  // when the keys are absent; 0: required
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

}  // namespace hexad::modeling
