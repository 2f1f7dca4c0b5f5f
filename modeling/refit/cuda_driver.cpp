#include "modeling/refit/cuda_driver.hpp"

#include <dlfcn.h>

namespace hexad::refit {

CudaDriver::CudaDriver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NODELETE);
  if (!library) sdk::fail(HEXAD_FAILED_PRECONDITION, "weights are in CUDA memory, and libcuda.so.1 is not there");
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (!function) sdk::fail(HEXAD_FAILED_PRECONDITION, "libcuda.so.1 has no %s: its driver is too old", name);
  };
  find(init, "cuInit");
  find(device_get, "cuDeviceGet");
  find(device_uuid, "cuDeviceGetUuid_v2");
  find(primary_retain, "cuDevicePrimaryCtxRetain");
  find(primary_release, "cuDevicePrimaryCtxRelease_v2");
  find(push, "cuCtxPushCurrent_v2");
  find(pop, "cuCtxPopCurrent_v2");
  find(allocate, "cuMemAlloc_v2");
  find(free, "cuMemFree_v2");
  find(ipc_handle, "cuIpcGetMemHandle");
  find(copy, "cuMemcpyAsync");
  find(stream_create, "cuStreamCreate");
  find(stream_destroy, "cuStreamDestroy_v2");
  find(query, "cuStreamQuery");
  find(synchronize, "cuStreamSynchronize");
  check(init(0), "cuInit");
}

const CudaDriver& CudaDriver::get() {
  static const CudaDriver driver;
  return driver;
}

void CudaDriver::check(int result, const char* what) {
  if (result != 0) sdk::fail(HEXAD_INTERNAL, "weight update: %s gave CUDA error %d", what, result);
}

CudaContext::CudaContext(int device_id) {
  const CudaDriver& driver = CudaDriver::get();
  CudaDriver::check(driver.device_get(&device_, device_id), "cuDeviceGet");
  void* context = nullptr;
  CudaDriver::check(driver.primary_retain(&context, device_), "cuDevicePrimaryCtxRetain");
  if (const int result = driver.push(context); result != 0) {
    driver.primary_release(device_);
    CudaDriver::check(result, "cuCtxPushCurrent");
  }
}

CudaContext::~CudaContext() {
  const CudaDriver& driver = CudaDriver::get();
  void* context = nullptr;
  driver.pop(&context);
  driver.primary_release(device_);
}

}  // namespace hexad::refit
