// Rotary position embedding as a config.json describes it.
#pragma once
#include <cstdint>
#include <optional>

#include "lib/model/family/config_fields.hpp"

namespace hexad::model {

enum class RopeScaling { none, linear, llama3, yarn };

// Names and defaults are those of transformers' rope_parameters.
struct RopeConfig {
  double theta = 10000.0;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1.0;
  int64_t original_max_position_embeddings = 0;          // llama3, yarn
  double low_freq_factor = 1.0, high_freq_factor = 4.0;  // llama3
  double beta_fast = 32.0, beta_slow = 1.0;              // yarn
  std::optional<double> attention_factor;                // yarn: scale of cos and sin; absent = derived from factor
  std::optional<double> mscale, mscale_all_dim;          // yarn
  bool truncate = true;                                  // yarn: round the correction range to whole dimensions
};

// Reads rope_parameters (transformers 5) or rope_theta and rope_scaling (published style; `type` or `rope_type`).
// `default_theta`: where rope_theta is absent. Throws Error: an unknown type, what is missing, wrong values.
RopeConfig parse_rope(const ConfigFields& config, int64_t max_position_embeddings, double default_theta);

// Of yarn: how much larger cos and sin are at a context that is `scale` times as long.
double yarn_magnitude(double scale, double multiplier);

// DeepSeek's factor of the query (and of the key) under yarn with mscale_all_dim; 1 otherwise.
double yarn_logit_mscale(const RopeConfig& config);

}  // namespace hexad::model
