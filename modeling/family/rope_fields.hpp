// Rope keys of a config.json.
#pragma once
#include "modeling/family/config_fields.hpp"
#include "modeling/op/rope_config.hpp"

namespace hexad::modeling {

// Reads rope_parameters (transformers 5) or rope_theta and rope_scaling (published style; `type` or `rope_type`).
RopeConfig parse_rope(const ConfigFields& config, int64_t max_position_embeddings);

}  // namespace hexad::modeling
