#include "modeling/op/cuda/batch_invariant/hopper/product.hpp"

namespace hexad::modeling::cuda {

void hopper_product(const InvariantProduct& call, CUstream_st* stream) {
  const auto tiles = [&](int out, int rows) {
    return int64_t(call.out + out - 1) / out * ((call.rows + rows - 1) / rows);
  };
  if (call.rows <= 16) return hopper_product_64x16(call, stream);
  if (call.rows <= 64 || 2 * tiles(128, 128) <= call.processors) return hopper_product_64x64(call, stream);
  // Large tiles read least; small ones leave no processor idle.
  tiles(128, 256) < call.processors ? hopper_product_128x128(call, stream) : hopper_product_128x256(call, stream);
}

}  // namespace hexad::modeling::cuda
