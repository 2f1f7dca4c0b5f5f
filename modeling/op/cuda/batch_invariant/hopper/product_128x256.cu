#include "modeling/op/cuda/batch_invariant/hopper/product.cuh"

namespace hexad::modeling::cuda {

void hopper_product_128x256(const InvariantProduct& call, CUstream_st* stream) {
  launch_product<ProductTile<128, 256, 64, 2, true>>(call, stream);
}

}  // namespace hexad::modeling::cuda
