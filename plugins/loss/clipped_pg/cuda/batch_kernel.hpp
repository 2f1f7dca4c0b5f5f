// The loss of a batch in device memory.
#pragma once
#include <cuda_runtime_api.h>

#include "../batch.hpp"

namespace clipped_pg {

// Bytes of device memory that compute_on_device works in, for so many sequences.
size_t scratch_bytes(int64_t sequences);

// compute_on_host's results, in `loss` and `metrics` on the device, sums in a fixed order. batch.cu_seqlens is host
// memory here and copied into `scratch`, which is in use until the stream has got there. Nothing waits for the device.
cudaError_t compute_on_device(const Options& options, Batch batch, void* scratch, double* loss, double* metrics,
                              cudaStream_t stream);

}  // namespace clipped_pg
