#include "plugins/native/cuda/flash/launch.cuh"

namespace hexad::native::cuda {

template void launch_attention<64, 64, false, __nv_fp8_e4m3>(const AttentionShape&, const LevelArrays&,
                                                             const __nv_bfloat16*, LayerPools, __nv_bfloat16*, float*,
                                                             cudaStream_t);

}  // namespace hexad::native::cuda
