// The cache of one layer, as the kernels take it.
#pragma once

namespace hexad::native::cuda {

// Keys and values, [blocks, kv_heads, block_size, dim] each: bf16, or with fp8 e4m3.
struct LayerPools {
  void *keys, *values;
  bool fp8 = false;
};

}  // namespace hexad::native::cuda
