#include "../device_batch.hpp"

#include "batch_kernel.hpp"

namespace clipped_pg {

void compute_on_device(const hexad::sdk::Call& call, DLDevice device, const Options& options, const Batch& batch,
                       double* loss, double* metrics) {
  const hexad_host* host = call.host();
  void* scratch = nullptr;
  call.check(host->alloc(call.raw(), device.device_type, device.device_id, scratch_bytes(batch.sequences), &scratch));
  const cudaError_t error =
      compute_on_device(options, batch, scratch, loss, metrics, static_cast<cudaStream_t>(call.stream(device)));
  host->free(scratch, device.device_type, device.device_id);  // in the stream's order
  if (error != cudaSuccess)
    hexad::sdk::fail(HEXAD_INTERNAL, "clipped_pg on CUDA device %d: %s", device.device_id, cudaGetErrorString(error));
}

}  // namespace clipped_pg
