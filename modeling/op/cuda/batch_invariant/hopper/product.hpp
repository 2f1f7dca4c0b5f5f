// The batch-invariant product by Hopper's instructions (wgmma, TMA). runs_hopper_kernels() says where it runs.
#pragma once
#include "modeling/op/cuda/batch_invariant/product_kernel.hpp"

namespace hexad::modeling::cuda {

// invariant_product() on a device that runs Hopper's kernels.
void hopper_product(const InvariantProduct& call, CUstream_st* stream);

// In tiles of one size: what each takes of the weight's rows and of x's rows. Same bits, other speed.
void hopper_product_64x16(const InvariantProduct& call, CUstream_st* stream);
void hopper_product_64x64(const InvariantProduct& call, CUstream_st* stream);
void hopper_product_128x128(const InvariantProduct& call, CUstream_st* stream);
void hopper_product_128x256(const InvariantProduct& call, CUstream_st* stream);

}  // namespace hexad::modeling::cuda
