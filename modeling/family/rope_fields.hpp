// Rope keys of a config.json.
#pragma once
#include "modeling/family/config_fields.hpp"
#include "modeling/op/rope_config.hpp"

namespace hexad::modeling {

// Reads rope_parameters (transformers 5) or rope_theta and rope_scaling (published style; `type` or `rope_type`).
// `default_theta`: where rope_theta is absent.
RopeConfig parse_rope(const ConfigFields& config, int64_t max_position_embeddings, double default_theta = 10000.0);

}  // namespace hexad::modeling
