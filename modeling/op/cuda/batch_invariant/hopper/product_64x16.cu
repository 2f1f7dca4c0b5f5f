#include "modeling/op/cuda/batch_invariant/hopper/product.cuh"

namespace hexad::modeling::cuda {

void hopper_product_64x16(const InvariantProduct& call, CUstream_st* stream) {
  launch_product<ProductTile<64, 16, 128, 1, false>>(call, stream);
}

}  // namespace hexad::modeling::cuda
