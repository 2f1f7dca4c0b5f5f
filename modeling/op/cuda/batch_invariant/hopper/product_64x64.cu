#include "modeling/op/cuda/batch_invariant/hopper/product.cuh"

namespace hexad::modeling::cuda {

void hopper_product_64x64(const InvariantProduct& call, CUstream_st* stream) {
  launch_product<ProductTile<64, 64, 128, 1, false>>(call, stream);
}

}  // namespace hexad::modeling::cuda
