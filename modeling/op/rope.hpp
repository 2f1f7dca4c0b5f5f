// Rotary position embedding with transformers' convention: dimension i is paired with i + D/2.
#pragma once
#include <array>
#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

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

// cos and sin of the angles at T positions, fp32 [T, D/2], yarn's attention factor multiplied in. Made once a forward
// pass and shared by all layers.
struct Rope {
  at::Tensor cos, sin;
};

// positions: int64 [T] on any device; the result is on the same device. Angles are formed in fp32, as transformers
// does.
Rope make_rope(const RopeConfig& config, int64_t head_dim, const at::Tensor& positions);

// x [T, heads, D] -> rotated x, same dtype (fp32 arithmetic inside). Differentiable in x.
at::Tensor apply_rope(const at::Tensor& x, const Rope& rope);

// {apply_rope(q), apply_rope(k), v} of q [T, Hq, D], k and v [T, Hkv, D]. On a GPU one pass, and the results lie side
// by side in one tensor (op/row/adjacent.hpp), as do the gradients that it hands back.
std::array<at::Tensor, 3> rotate_heads(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Rope& rope);

// DeepSeek's factor of the query (and of the key) under yarn with mscale_all_dim; 1 otherwise.
double yarn_logit_mscale(const RopeConfig& config);

}  // namespace hexad::modeling
