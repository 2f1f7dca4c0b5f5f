// The runtime's table, opened as a worker opens it, and small DLTensors.
#pragma once
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "runtime/runtime.h"
#include "tests/runtime/rank_process.hpp"

namespace runtime_test {

inline const hexad_runtime& runtime() {
  static const hexad_runtime* table = [] {
    const std::string file = rank_process::environment("HEXAD_BUILD_DIR") + "/lib/libhexad_runtime.so";
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(library, dlerror());
    using Entry = const hexad_runtime* (*)();
    return reinterpret_cast<Entry>(dlsym(library, "hexad_runtime_table"))();
  }();
  return *table;
}

// Rank r of a run on GPUs has the GPU r.
inline hexad_runtime_options options(const rank_process::Rank& rank, int64_t timeout_ms) {
  hexad_runtime_options result{};
  result.rank = result.local_rank = rank.rank;
  result.world_size = result.local_size = rank.world;
  result.device_type = test_device::is_gpu() ? kDLCUDA : kDLCPU;
  result.device_id = test_device::is_gpu() ? rank.rank : 0;
  result.threads = 1;
  result.master_address = "127.0.0.1";
  result.master_port = rank.port;
  result.timeout_ms = timeout_ms;
  return result;
}

inline void check_ok(hexad_code code) { REQUIRE_MESSAGE(code == HEXAD_OK, runtime().error()); }

// Of this process's rank; the CPU until `start`.
inline DLDevice& device() {
  static DLDevice of_rank{kDLCPU, 0};
  return of_rank;
}

inline void start(const rank_process::Rank& rank, int64_t timeout_ms) {
  const hexad_runtime_options wanted = options(rank, timeout_ms);
  check_ok(runtime().start(&wanted));
  device() = {static_cast<DLDeviceType>(wanted.device_type), wanted.device_id};
}

template <typename T>
struct Tensor {
  std::vector<T> data;
  int64_t shape[1];
  DLTensor dl{};

  explicit Tensor(std::vector<T> values) : data(std::move(values)), shape{static_cast<int64_t>(data.size())} {
    dl.data = data.data();
    dl.device = {kDLCPU, 0};
    dl.ndim = 1;
    dl.shape = shape;
    const bool floating = std::is_floating_point_v<T>;
    dl.dtype = {static_cast<uint8_t>(floating ? kDLFloat : kDLInt), 8 * sizeof(T), 1};
  }
  Tensor(const Tensor&) = delete;
};

}  // namespace runtime_test
