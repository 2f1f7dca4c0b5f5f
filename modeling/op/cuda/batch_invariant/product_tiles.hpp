// The product in tiles of one size: what each takes of the weight's rows and of x's rows. Same bits, other speed.
#pragma once
#include "modeling/op/cuda/batch_invariant/product_kernel.hpp"

namespace hexad::modeling::cuda {

void product_64x16(const InvariantProduct& call, CUstream_st* stream);
void product_64x64(const InvariantProduct& call, CUstream_st* stream);
void product_128x128(const InvariantProduct& call, CUstream_st* stream);
void product_128x256(const InvariantProduct& call, CUstream_st* stream);

}  // namespace hexad::modeling::cuda
