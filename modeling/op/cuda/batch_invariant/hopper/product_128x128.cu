#include "modeling/op/cuda/batch_invariant/hopper/product.cuh"

namespace hexad::modeling::cuda {

void hopper_product_128x128(const InvariantProduct& call, CUstream_st* stream) {
  launch_product<ProductTile<128, 128, 64, 1, true>>(call, stream);
}

}  // namespace hexad::modeling::cuda
