// Programmatic dependent launch (CUDA C++ Programming Guide): a kernel that is launched so starts while the last blocks
// of the one before it still run. Until after_earlier() it may read what no kernel of the pass writes: weights.
#pragma once
#include <cuda_runtime.h>

#include "modeling/op/cuda/architecture.hpp"
#include "plugins/native/cuda/check.hpp"

namespace hexad::native::cuda {

// The kernel behind this one may start, as soon as every block of this one has come here.
__device__ inline void start_next() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Everything that was enqueued before is complete. Blocks call it before they return, read results or write: then the
// kernel behind may rely on the one before in turn.
__device__ inline void after_earlier() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <typename... Parameters, typename... Arguments>
void launch_early(const char* what, void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                  cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  int device = 0;
  check(cudaGetDevice(&device), what);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks), config.blockDim = dim3(threads);
  config.stream = stream;
  // A kernel without after_earlier()'s instruction would read what is not yet written.
  config.attrs = &early, config.numAttrs = modeling::cuda::kernel_architecture(device) >= 90 ? 1 : 0;
  check(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), what);
}

}  // namespace hexad::native::cuda
