#include "plugins/vllm_bridge/refit/host_copy.hpp"

#include <dlfcn.h>

namespace hexad::vllm {
namespace {

// The functions of libcuda.so.1 that a copy needs, under the names of the driver API; results are CUresult, 0 is good.
struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*primary_retain)(void**, int) = nullptr;
  int (*primary_release)(int) = nullptr;
  int (*push)(void*) = nullptr;
  int (*pop)(void**) = nullptr;
  int (*copy)(void*, unsigned long long, size_t, void*) = nullptr;
  int (*synchronize)(void*) = nullptr;

  Driver() {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NODELETE);
    if (!library) sdk::fail(HEXAD_FAILED_PRECONDITION, "weights are in CUDA memory, and libcuda.so.1 is not there");
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      if (!function) sdk::fail(HEXAD_FAILED_PRECONDITION, "libcuda.so.1 has no %s: its driver is too old", name);
    };
    find(init, "cuInit");
    find(device_get, "cuDeviceGet");
    find(primary_retain, "cuDevicePrimaryCtxRetain");
    find(primary_release, "cuDevicePrimaryCtxRelease_v2");
    find(push, "cuCtxPushCurrent_v2");
    find(pop, "cuCtxPopCurrent_v2");
    find(copy, "cuMemcpyDtoHAsync_v2");
    find(synchronize, "cuStreamSynchronize");
    check(init(0), "cuInit");
  }
  static void check(int result, const char* what) {
    if (result != 0) sdk::fail(HEXAD_INTERNAL, "copying a weight to the host: %s gave CUDA error %d", what, result);
  }
};

// The device's primary context, which LibTorch uses, on this thread for a scope.
class Context {
 public:
  Context(const Driver& driver, int device_id) : driver_(driver) {
    Driver::check(driver_.device_get(&device_, device_id), "cuDeviceGet");
    void* context = nullptr;
    Driver::check(driver_.primary_retain(&context, device_), "cuDevicePrimaryCtxRetain");
    if (const int result = driver_.push(context); result != 0) {
      driver_.primary_release(device_);
      Driver::check(result, "cuCtxPushCurrent");
    }
  }
  ~Context() {
    void* context = nullptr;
    driver_.pop(&context);
    driver_.primary_release(device_);
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

 private:
  const Driver& driver_;
  int device_ = 0;
};

}  // namespace

size_t byte_size(const DLTensor& tensor) {
  size_t bytes = static_cast<size_t>(tensor.dtype.bits) * tensor.dtype.lanes / 8;
  for (int32_t d = 0; d < tensor.ndim; ++d) bytes *= static_cast<size_t>(tensor.shape[d]);
  return bytes;
}

std::span<const std::byte> on_host(const sdk::Call& call, const DLTensor& tensor, std::vector<std::byte>& memory) {
  const size_t bytes = byte_size(tensor);
  const auto* data = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  if (tensor.device.device_type == kDLCPU || tensor.device.device_type == kDLCUDAHost) return {data, bytes};
  static const Driver driver;
  memory.resize(bytes);
  const Context context(driver, tensor.device.device_id);
  void* const stream = call.stream(tensor.device);
  Driver::check(driver.copy(memory.data(), reinterpret_cast<unsigned long long>(data), bytes, stream), "cuMemcpyDtoH");
  Driver::check(driver.synchronize(stream), "cuStreamSynchronize");
  return memory;
}

}  // namespace hexad::vllm
