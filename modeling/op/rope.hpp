// Rotary position embedding with transformers' convention: dimension i is paired with i + D/2.
#pragma once
#include <array>
#include <cstdint>

#include <ATen/core/Tensor.h>

#include "lib/model/family/rope_config.hpp"

namespace hexad::modeling {

using model::RopeConfig;
using model::RopeScaling;

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

}  // namespace hexad::modeling
