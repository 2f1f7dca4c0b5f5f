// Rotary position embedding: base frequency and scaling.
#pragma once
#include <cstdint>
#include <optional>

namespace hexad::modeling {

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

}  // namespace hexad::modeling
