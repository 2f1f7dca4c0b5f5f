#include "modeling/refit/host_copy.hpp"

#include "modeling/refit/cuda_driver.hpp"

namespace hexad::refit {

size_t byte_size(const DLTensor& tensor) {
  size_t bytes = static_cast<size_t>(tensor.dtype.bits) * tensor.dtype.lanes / 8;
  for (int32_t d = 0; d < tensor.ndim; ++d) bytes *= static_cast<size_t>(tensor.shape[d]);
  return bytes;
}

std::span<const std::byte> on_host(const sdk::Call& call, const DLTensor& tensor, std::vector<std::byte>& memory) {
  const size_t bytes = byte_size(tensor);
  const auto* data = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  if (tensor.device.device_type == kDLCPU || tensor.device.device_type == kDLCUDAHost) return {data, bytes};
  memory.resize(bytes);
  const CudaContext context(tensor.device.device_id);
  void* const stream = call.stream(tensor.device);
  const CudaDriver& driver = CudaDriver::get();
  CudaDriver::check(
      driver.copy(reinterpret_cast<CudaDriver::Pointer>(memory.data()), address_of(tensor), bytes, stream),
      "cuMemcpyAsync");
  CudaDriver::check(driver.synchronize(stream), "cuStreamSynchronize");
  return memory;
}

}  // namespace hexad::refit
