#include "modeling/refit/staging.hpp"

#include <algorithm>
#include <cstring>

#include "modeling/refit/host_copy.hpp"

namespace hexad::refit {

bool Staging::reserve(Slices slices, DLDevice device) {
  size_t needed = 0, most = 0;  // of one message: all, if they fit; else the largest
  for (const hexad_weight_slice* slice : slices) {
    needed += byte_size(*slice->tensor);
    most = std::max(most, byte_size(*slice->tensor));
  }
  return grow(std::max({std::min(needed, wanted_), most, size_t{1}}), device);
}

std::vector<int64_t> Staging::fill(const sdk::Call& call, Slices slices) {
  std::vector<int64_t> sizes;
  size_t used = 0;
  for (const hexad_weight_slice* slice : slices) {
    const size_t bytes = byte_size(*slice->tensor);
    if (used > 0 && used + bytes > wanted_) break;
    copy(call, used, *slice->tensor);
    sizes.push_back(static_cast<int64_t>(bytes));
    used += bytes;
  }
  finish(call);
  return sizes;
}

GpuStaging::~GpuStaging() { free(); }

void GpuStaging::free() {
  if (!address_) return;
  try {
    const CudaContext context(device_id_);
    CudaDriver::get().free(address_);
  } catch (const std::exception&) {  // of a lost GPU there is nothing to give back
  }
  address_ = 0, size_ = 0;
}

bool GpuStaging::grow(size_t bytes, DLDevice device) {
  bytes = std::max(bytes, wanted_);
  if (address_ && size_ >= bytes && device_id_ == device.device_id) return false;
  free();
  device_id_ = device.device_id;
  const CudaContext context(device_id_);
  CudaDriver::check(CudaDriver::get().allocate(&address_, bytes), "cuMemAlloc");
  size_ = bytes;
  return true;
}

void GpuStaging::copy(const sdk::Call& call, size_t at, const DLTensor& tensor) {
  const CudaContext context(device_id_);
  CudaDriver::check(
      CudaDriver::get().copy(address_ + at, address_of(tensor), byte_size(tensor), call.stream({kDLCUDA, device_id_})),
      "cuMemcpyAsync");
}

void GpuStaging::finish(const sdk::Call& call) {
  const CudaContext context(device_id_);
  CudaDriver::check(CudaDriver::get().synchronize(call.stream({kDLCUDA, device_id_})), "cuStreamSynchronize");
}

bool HostStaging::grow(size_t bytes, DLDevice) {
  if (size_ >= bytes) return false;
  memory_.resize(bytes);
  size_ = bytes;
  return true;
}

void HostStaging::copy(const sdk::Call& call, size_t at, const DLTensor& tensor) {
  const auto bytes = on_host(call, tensor, from_gpu_);
  if (!bytes.empty()) std::memcpy(memory_.data() + at, bytes.data(), bytes.size());
}

}  // namespace hexad::refit
