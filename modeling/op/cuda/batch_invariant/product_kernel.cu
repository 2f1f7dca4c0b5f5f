#include "modeling/op/cuda/batch_invariant/product_kernel.hpp"

namespace hexad::modeling::cuda {

void invariant_product(const InvariantProduct& call, CUstream_st* stream) {
  if (call.rows == 0) return;
  const auto tiles = [&](int out, int rows) {
    return int64_t(call.out + out - 1) / out * ((call.rows + rows - 1) / rows);
  };
  if (call.rows <= 16) return product_64x16(call, stream);
  if (call.rows <= 64 || 2 * tiles(128, 128) <= call.processors) return product_64x64(call, stream);
  // Large tiles read least; small ones leave no processor idle.
  tiles(128, 256) < call.processors ? product_128x128(call, stream) : product_128x256(call, stream);
}

}  // namespace hexad::modeling::cuda
