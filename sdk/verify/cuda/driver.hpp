// The CUDA driver's functions, found at run time: the kit is built without CUDA and runs where there is none.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace hexad::verify {

// Named as in the driver API (without suffixes of versions); handles are void*, device addresses uint64_t, results int.
struct CudaDriver {
  static constexpr int kSuccess = 0, kNotReady = 600;
  static constexpr unsigned kStreamDefault = 0, kStreamNonBlocking = 1;
  static constexpr unsigned kHostPortable = 1, kHostMapped = 2;
  static constexpr int kCaptureGlobal = 0;

  int (*init)(unsigned);
  int (*get_error_name)(int, const char**);
  int (*device_get_count)(int*);
  int (*device_get)(int*, int);
  int (*device_get_name)(char*, int, int);
  int (*primary_context_retain)(void**, int);
  int (*context_set_current)(void*);
  int (*context_get_current)(void**);
  int (*context_synchronize)();
  int (*memory_info)(size_t*, size_t*);
  int (*memory_alloc)(uint64_t*, size_t);
  int (*memory_set_async)(uint64_t, unsigned char, size_t, void*);
  int (*copy_to_device_async)(uint64_t, const void*, size_t, void*);
  int (*copy_to_host_async)(void*, uint64_t, size_t, void*);
  int (*copy_on_device_async)(uint64_t, uint64_t, size_t, void*);
  int (*host_alloc)(void**, size_t, unsigned);
  int (*host_device_pointer)(uint64_t*, void*, unsigned);
  int (*stream_create)(void**, unsigned);
  int (*stream_query)(void*);
  int (*stream_synchronize)(void*);
  int (*stream_begin_capture)(void*, int);
  int (*stream_end_capture)(void*, void**);
  int (*graph_instantiate)(void**, void*, unsigned long long);
  int (*graph_launch)(void*, void*);
  int (*graph_exec_destroy)(void*);
  int (*graph_destroy)(void*);
  int (*module_load_data)(void**, const void*);
  int (*module_get_function)(void**, void*, const char*);
  int (*launch_kernel)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                       void**);

  // Opens libcuda.so.1 and initialises it, once a process; null with the reason if there is no driver or no GPU.
  // A process that has done so may not fork any more.
  static const CudaDriver* open(std::string& why_not);
};

}  // namespace hexad::verify
