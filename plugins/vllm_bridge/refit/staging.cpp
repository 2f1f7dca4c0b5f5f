#include "plugins/vllm_bridge/refit/staging.hpp"

#include <algorithm>

#include "plugins/server_bridge/refit/host_copy.hpp"

namespace hexad::vllm {

Staging::~Staging() { free(); }

void Staging::free() {
  if (!address_) return;
  try {
    const CudaContext context(device_id_);
    CudaDriver::get().free(address_);
  } catch (const std::exception&) {  // of a lost GPU there is nothing to give back
  }
  address_ = 0, size_ = 0;
}

bool Staging::reserve(Slices slices) {
  size_t needed = wanted_;
  for (const hexad_weight_slice* slice : slices) needed = std::max(needed, byte_size(*slice->tensor));
  const int device_id = slices[0]->tensor->device.device_id;
  if (address_ && size_ >= needed && device_id_ == device_id) return false;
  free();
  device_id_ = device_id;
  const CudaContext context(device_id_);
  CudaDriver::check(CudaDriver::get().allocate(&address_, needed), "cuMemAlloc");
  size_ = needed;
  return true;
}

std::vector<int64_t> Staging::fill(const sdk::Call& call, Slices slices) {
  const CudaContext context(device_id_);
  void* const stream = call.stream({kDLCUDA, device_id_});
  std::vector<int64_t> sizes;
  size_t used = 0;
  for (const hexad_weight_slice* slice : slices) {
    const size_t bytes = byte_size(*slice->tensor);
    if (used > 0 && used + bytes > wanted_) break;
    CudaDriver::check(CudaDriver::get().copy(address_ + used, address_of(*slice->tensor), bytes, stream),
                      "cuMemcpyAsync");
    sizes.push_back(static_cast<int64_t>(bytes));
    used += bytes;
  }
  CudaDriver::check(CudaDriver::get().synchronize(stream), "cuStreamSynchronize");
  return sizes;
}

}  // namespace hexad::vllm
