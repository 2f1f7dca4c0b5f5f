// Batches in device memory: what a build with CUDA does with them.
#pragma once
#include <hexad/loss.hpp>

#include "batch.hpp"

namespace clipped_pg {

// What compute takes: a build without CUDA has no_cuda.cpp in place of the kernels.
#ifdef CLIPPED_PG_CUDA
inline constexpr uint64_t kMemory = HEXAD_CAP_HOST_MEM | HEXAD_CAP_CUDA_MEM;
#else
inline constexpr uint64_t kMemory = HEXAD_CAP_HOST_MEM;
#endif

// compute_on_host's results for arrays on `device`; cu_seqlens is host memory. Enqueues on the call's stream and
// returns.
void compute_on_device(const hexad::sdk::Call& call, DLDevice device, const Options& options, const Batch& batch,
                       double* loss, double* metrics);

}  // namespace clipped_pg
