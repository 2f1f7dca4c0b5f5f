// CPU kernel of rope.hpp; T is float or cpu::BFloat16.
#pragma once
#include <cstdint>

#include "modeling/op/cpu/vector_math.hpp"

namespace hexad::modeling::cpu {

// x, y [tokens, heads, 2 * half] contiguous, cos and sin [tokens, half]. direction 1 rotates, -1 rotates back (which is
// the backward pass).
void rope_rotate(const float* x, const float* cos, const float* sin, float* y, int64_t tokens, int64_t heads,
                 int64_t half, float direction);
void rope_rotate(const BFloat16* x, const float* cos, const float* sin, BFloat16* y, int64_t tokens, int64_t heads,
                 int64_t half, float direction);

}  // namespace hexad::modeling::cpu
