#include "sdk/verify/cuda/engine.hpp"

#include <string_view>
#include <vector>

namespace hexad::verify {
namespace {

// Of the one CudaEngine; plugins may free memory at any time, so it stays.
CudaDevice* gpu = nullptr;
const hexad_host* real = nullptr;

hexad_code refuse(hexad_call* call, hexad_code code, std::string_view text) {
  return real->set_error(call, code, text.data(), text.size());
}

hexad_code device(hexad_call*, int32_t* device_type, int32_t* device_id) {
  *device_type = kDLCUDA;
  *device_id = 0;
  return HEXAD_OK;
}

void* stream(hexad_call*, int32_t device_type, int32_t device_id) {
  return device_type == kDLCUDA && device_id == 0 ? gpu->stream() : nullptr;
}

hexad_code alloc(hexad_call* call, int32_t device_type, int32_t device_id, uint64_t bytes, void** out) {
  if (device_type != kDLCUDA) return real->alloc(call, device_type, device_id, bytes, out);
  if (device_id != 0) return refuse(call, HEXAD_INVALID_ARGUMENT, "alloc: this worker's device is CUDA device 0");
  void* block = gpu->try_allocate(bytes);
  if (!block) return refuse(call, HEXAD_RESOURCE_EXHAUSTED, "alloc: the kit's device memory is used up");
  *out = block;
  return HEXAD_OK;
}

void free_memory(void* pointer, int32_t device_type, int32_t device_id) {
  device_type == kDLCUDA ? gpu->release(pointer) : real->free(pointer, device_type, device_id);
}

// A tensor on the device; its shape and strides live beside it.
struct DeviceTensor {
  DLManagedTensorVersioned managed{};
  std::vector<int64_t> shape, strides;
};

void delete_tensor(DLManagedTensorVersioned* managed) {
  gpu->release(managed->dl_tensor.data);
  delete static_cast<DeviceTensor*>(managed->manager_ctx);
}

hexad_code tensor_new(hexad_call* call, const DLTensor* prototype, DLManagedTensorVersioned** out) {
  if (prototype->device.device_type != kDLCUDA) return real->tensor_new(call, prototype, out);
  auto owned = std::make_unique<DeviceTensor>();
  owned->shape.assign(prototype->shape, prototype->shape + prototype->ndim);
  owned->strides.resize(owned->shape.size());
  uint64_t count = 1;
  for (size_t d = owned->shape.size(); d-- > 0; count *= static_cast<uint64_t>(owned->shape[d]))
    owned->strides[d] = static_cast<int64_t>(count);
  void* data = nullptr;
  const uint64_t bytes = (count * prototype->dtype.bits * prototype->dtype.lanes + 7) / 8;
  const hexad_code code = alloc(call, kDLCUDA, prototype->device.device_id, bytes, &data);
  if (code != HEXAD_OK) return code;
  owned->managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  owned->managed.manager_ctx = owned.get();
  owned->managed.deleter = delete_tensor;
  owned->managed.dl_tensor = {
      data, prototype->device, prototype->ndim, prototype->dtype, owned->shape.data(), owned->strides.data(), 0};
  *out = &owned.release()->managed;
  return HEXAD_OK;
}

}  // namespace

CudaEngine::CudaEngine(Engine& engine, CudaDevice& cuda) : real_(engine), device_(cuda) {
  gpu = &cuda;
  real = engine.host();
  auto* host = new hexad_host(*real);  // leaked, as a host table has to live on
  host->device = device;
  host->stream = stream;
  host->alloc = alloc;
  host->free = free_memory;
  host->tensor_new = tensor_new;
  host_ = host;
}

std::unique_ptr<Call> CudaEngine::call(const CallOptions& options) {
  device_.make_current();
  return real_.call(options);
}
std::unique_ptr<Config> CudaEngine::config(const std::map<std::string, std::string>& changes) {
  return real_.config(changes);
}

}  // namespace hexad::verify
