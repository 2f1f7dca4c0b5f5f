// CPU kernel of the gradient norm. parallel/grad_norm.hpp.
#pragma once
#include <cstdint>

#include "modeling/op/cpu/vector_math.hpp"

namespace hexad::modeling::cpu {

// x [count], squared and added in fp64.
double sum_of_squares(const float* x, int64_t count);
double sum_of_squares(const BFloat16* x, int64_t count);

}  // namespace hexad::modeling::cpu
