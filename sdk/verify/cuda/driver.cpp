#include "sdk/verify/cuda/driver.hpp"

#include <dlfcn.h>

#include <cstring>
#include <utility>

namespace hexad::verify {
namespace {

template <typename Function>
void find(void* library, const char* symbol, Function& function, std::string& why_not) {
  void* address = ::dlsym(library, symbol);
  if (!address && why_not.empty()) why_not = std::string("libcuda.so.1 has no ") + symbol + ": its driver is too old";
  static_assert(sizeof function == sizeof address);
  std::memcpy(&function, &address, sizeof address);
}

void find_all(void* library, CudaDriver& driver, std::string& why_not) {
  const auto take = [&](const char* symbol, auto& function) { find(library, symbol, function, why_not); };
  take("cuInit", driver.init);
  take("cuGetErrorName", driver.get_error_name);
  take("cuDeviceGetCount", driver.device_get_count);
  take("cuDeviceGet", driver.device_get);
  take("cuDeviceGetName", driver.device_get_name);
  take("cuDevicePrimaryCtxRetain", driver.primary_context_retain);
  take("cuCtxSetCurrent", driver.context_set_current);
  take("cuCtxGetCurrent", driver.context_get_current);
  take("cuCtxSynchronize", driver.context_synchronize);
  take("cuMemGetInfo_v2", driver.memory_info);
  take("cuMemAlloc_v2", driver.memory_alloc);
  take("cuMemsetD8Async", driver.memory_set_async);
  take("cuMemcpyHtoDAsync_v2", driver.copy_to_device_async);
  take("cuMemcpyDtoHAsync_v2", driver.copy_to_host_async);
  take("cuMemcpyDtoDAsync_v2", driver.copy_on_device_async);
  take("cuMemHostAlloc", driver.host_alloc);
  take("cuMemHostGetDevicePointer_v2", driver.host_device_pointer);
  take("cuStreamCreate", driver.stream_create);
  take("cuStreamQuery", driver.stream_query);
  take("cuStreamSynchronize", driver.stream_synchronize);
  take("cuStreamBeginCapture_v2", driver.stream_begin_capture);
  take("cuStreamEndCapture", driver.stream_end_capture);
  take("cuGraphInstantiateWithFlags", driver.graph_instantiate);
  take("cuGraphLaunch", driver.graph_launch);
  take("cuGraphExecDestroy", driver.graph_exec_destroy);
  take("cuGraphDestroy", driver.graph_destroy);
  take("cuModuleLoadData", driver.module_load_data);
  take("cuModuleGetFunction", driver.module_get_function);
  take("cuLaunchKernel", driver.launch_kernel);
}

// The driver's table and, if it is of no use, why.
std::pair<CudaDriver, std::string> load() {
  std::pair<CudaDriver, std::string> result{};
  auto& [driver, why_not] = result;
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    why_not = ::dlerror();
    return result;
  }
  find_all(library, driver, why_not);
  if (!why_not.empty()) return result;
  int code = driver.init(0), count = 0;
  if (code == CudaDriver::kSuccess) code = driver.device_get_count(&count);
  const char* name = nullptr;
  if (code != CudaDriver::kSuccess && driver.get_error_name(code, &name) != CudaDriver::kSuccess)
    name = "cuInit failed";
  if (name) {
    why_not = name;
  } else if (count < 1) {
    why_not = "the driver sees none";
  }
  return result;
}

}  // namespace

const CudaDriver* CudaDriver::open(std::string& why_not) {
  static const auto loaded = load();
  why_not = loaded.second;
  return loaded.second.empty() ? &loaded.first : nullptr;
}

}  // namespace hexad::verify
