// SwiGLU, and copies of cache blocks.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace hexad::native::cuda {

// gate_up bf16 [rows, 2 * width], the gate first -> out bf16 [rows, width]: silu(gate) * up in fp32, rounded once.
// width is a multiple of 8.
void swiglu(const __nv_bfloat16* gate_up, __nv_bfloat16* out, int rows, int width, cudaStream_t stream);

// In each of `pools` pools, which lie `pool_bytes` apart, copies block pairs[2 * i] to pairs[2 * i + 1] for i < count,
// in no order. Blocks have block_bytes, and all begin on 16; pairs is on the device.
void copy_blocks(void* cache, int pools, int64_t pool_bytes, int64_t block_bytes, const int32_t* pairs, int count,
                 cudaStream_t stream);

}  // namespace hexad::native::cuda
