// A runtime for tests: one "CUDA" device whose memory is the host's, and no process group.
#pragma once
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/runtime.h"

namespace plugin_test {

struct FakeTensor {
  DLManagedTensorVersioned managed{};
  std::vector<int64_t> shape;
  std::vector<double> memory;
};

inline int64_t& live_fake_tensors() {
  static int64_t count = 0;
  return count;
}

inline hexad_code fake_tensor_new(const DLTensor* prototype, DLManagedTensorVersioned** out) {
  auto* made = new FakeTensor;
  ++live_fake_tensors();
  made->shape.assign(prototype->shape, prototype->shape + prototype->ndim);
  int64_t count = 1;
  for (const int64_t size : made->shape) count *= size;
  made->memory.assign(static_cast<size_t>(count) + 1, 1e300);  // nothing may rely on zeros
  made->managed.dl_tensor = *prototype;
  made->managed.dl_tensor.data = made->memory.data();
  made->managed.dl_tensor.shape = made->shape.data();
  made->managed.dl_tensor.strides = nullptr;
  made->managed.dl_tensor.byte_offset = 0;
  made->managed.manager_ctx = made;
  made->managed.deleter = [](DLManagedTensorVersioned* self) {
    --live_fake_tensors();
    delete static_cast<FakeTensor*>(self->manager_ctx);
  };
  *out = &made->managed;
  return HEXAD_OK;
}

inline hexad_code fake_copy(const DLTensor* source, DLTensor* destination) {
  size_t bytes = source->dtype.bits / 8;
  for (int32_t d = 0; d < source->ndim; ++d) bytes *= static_cast<size_t>(source->shape[d]);
  std::memcpy(destination->data, source->data, bytes);
  return HEXAD_OK;
}

inline const hexad_runtime& fake_runtime() {
  static const hexad_runtime runtime = [] {
    hexad_runtime table{};
    table.error = [] { return "the fake device is on fire"; };
    table.libtorch_version = [] { return "2.11.0+cpu"; };
    table.cuda_version = [] { return "13.0"; };
    table.stream = [](int32_t, int32_t) -> void* { return nullptr; };
    table.alloc = [](int32_t, int32_t, uint64_t, void**) -> hexad_code { return HEXAD_RESOURCE_EXHAUSTED; };
    table.free = [](void*, int32_t, int32_t) {};
    table.tensor_new = fake_tensor_new;
    table.copy = fake_copy;
    table.comm_axis = [](const char*, hexad_comm** out) -> hexad_code {
      *out = nullptr;
      return HEXAD_OK;
    };
    table.kv_get = [](const char* key, int64_t, const void** value, uint64_t* size) -> hexad_code {
      static std::string last;  // each call forgets the one before, as a real runtime's may
      last = std::string("value of ") + key;
      *value = last.data();
      *size = last.size();
      return HEXAD_OK;
    };
    return table;
  }();
  return runtime;
}

}  // namespace plugin_test
