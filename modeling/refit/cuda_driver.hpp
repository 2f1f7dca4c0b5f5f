// The CUDA driver, looked for at run time: this plugin is one file with and without GPUs.
#pragma once
#include <hexad/services.hpp>

#include <cstddef>

namespace hexad::refit {

// Functions of libcuda.so.1 under the names of the driver API; results are CUresult, 0 is good.
struct CudaDriver {
  // The library, opened at the first call. Throws sdk::Error where there is none, or one too old.
  static const CudaDriver& get();
  // Throws sdk::Error saying what failed.
  static void check(int result, const char* what);

  using Pointer = unsigned long long;  // CUdeviceptr
  int (*init)(unsigned) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_uuid)(void*, int) = nullptr;
  int (*primary_retain)(void**, int) = nullptr;
  int (*primary_release)(int) = nullptr;
  int (*push)(void*) = nullptr;
  int (*pop)(void**) = nullptr;
  int (*allocate)(Pointer*, size_t) = nullptr;
  int (*free)(Pointer) = nullptr;
  int (*ipc_handle)(void*, Pointer) = nullptr;
  int (*copy)(Pointer, Pointer, size_t, void*) = nullptr;  // from and to any memory
  int (*stream_create)(void**, unsigned) = nullptr;
  int (*stream_destroy)(void*) = nullptr;
  int (*query)(void*) = nullptr;        // of a stream: 0 done, kNotReady
  int (*synchronize)(void*) = nullptr;  // with a stream
  static constexpr int kNotReady = 600;
  static constexpr unsigned kNonBlocking = 1;  // of streams: they do not wait for the default one

 private:
  CudaDriver();
};

// The device's primary context, which LibTorch uses, on this thread for a scope.
class CudaContext {
 public:
  explicit CudaContext(int device_id);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;
  int device() const { return device_; }  // CUdevice

 private:
  int device_ = 0;
};

inline CudaDriver::Pointer address_of(const DLTensor& tensor) {
  return reinterpret_cast<CudaDriver::Pointer>(tensor.data) + tensor.byte_offset;
}

}  // namespace hexad::refit
