// Memory and process groups of a process without LibTorch: malloc, the CPU, one rank.
#include <hexad/handle.hpp>

#include <cstdlib>
#include <vector>

#include "core/plugin/host/services.hpp"

namespace hexad::plugin {
namespace {

constexpr size_t kAlignment = 64;

hexad_code no_device(hexad_call* call) {
  return Call::from(call).set_error(HEXAD_FAILED_PRECONDITION, "this process has no device but the CPU");
}
hexad_code no_group(hexad_call* call) {
  return Call::from(call).set_error(HEXAD_FAILED_PRECONDITION, "this process has no process groups");
}

void* stream(hexad_call*, int32_t, int32_t) { return nullptr; }

void* aligned(uint64_t bytes) {
  if (bytes > PTRDIFF_MAX - kAlignment) return nullptr;
  return std::aligned_alloc(kAlignment, (std::max<uint64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment);
}

hexad_code alloc(hexad_call* call, int32_t device_type, int32_t, uint64_t bytes, void** out) {
  if (device_type != kDLCPU) return no_device(call);
  void* memory = aligned(bytes);
  if (!memory)
    return Call::from(call).set_error(HEXAD_RESOURCE_EXHAUSTED, fmt::format("cannot allocate {} bytes", bytes));
  *out = memory;
  return HEXAD_OK;
}

void free_memory(void* pointer, int32_t, int32_t) { std::free(pointer); }

// A tensor that owns its memory, shape and strides.
struct HostTensor {
  sdk::TensorHandle managed{};
  std::vector<int64_t> shape, strides;
};

void delete_tensor(sdk::TensorHandle* managed) {
  auto* owned = static_cast<HostTensor*>(managed->manager_ctx);
  std::free(managed->dl_tensor.data);
  delete owned;
}

hexad_code tensor_new(hexad_call* call, const DLTensor* prototype, sdk::TensorHandle** out) {
  if (prototype->device.device_type != kDLCPU) return no_device(call);
  return guarded(call, [&] {
    auto owned = std::make_unique<HostTensor>();
    owned->shape.assign(prototype->shape, prototype->shape + prototype->ndim);
    owned->strides.resize(owned->shape.size());
    uint64_t count = 1;
    for (size_t d = owned->shape.size(); d-- > 0;) {
      owned->strides[d] = static_cast<int64_t>(count);
      count *= static_cast<uint64_t>(owned->shape[d]);
    }
    owned->managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    owned->managed.deleter = delete_tensor;
    owned->managed.dl_tensor = *prototype;
    DLTensor& tensor = owned->managed.dl_tensor;
    tensor.shape = owned->shape.data();
    tensor.strides = owned->strides.data();
    tensor.byte_offset = 0;
    tensor.data = aligned((count * prototype->dtype.bits * prototype->dtype.lanes + 7) / 8);
    if (!tensor.data) throw std::bad_alloc();
    owned->managed.manager_ctx = owned.get();
    *out = &owned.release()->managed;
  });
}

hexad_code comm_axis(hexad_call*, const char*, hexad_comm** out) {
  *out = nullptr;
  return HEXAD_OK;
}

}  // namespace

void add_plain_services(hexad_host& host) {
  host.stream = stream;
  host.alloc = alloc;
  host.free = free_memory;
  host.tensor_new = tensor_new;
  host.comm_axis = comm_axis;
  host.comm_rank = [](const hexad_comm*) -> int32_t { return 0; };
  host.comm_size = [](const hexad_comm*) -> int32_t { return 1; };
  host.all_reduce = [](hexad_call* call, hexad_comm*, DLTensor*, int32_t) { return no_group(call); };
  host.all_gather = [](hexad_call* call, hexad_comm*, const DLTensor*, DLTensor*) { return no_group(call); };
  host.reduce_scatter = [](hexad_call* call, hexad_comm*, const DLTensor*, DLTensor*) { return no_group(call); };
  host.broadcast = [](hexad_call* call, hexad_comm*, DLTensor*, int32_t) { return no_group(call); };
  host.barrier = [](hexad_call* call, hexad_comm*) { return no_group(call); };
  host.comm_native = [](hexad_call* call, hexad_comm*, const char*, void**) { return no_group(call); };
  host.comm_new = [](hexad_call*, const int32_t*, int32_t, const char*, hexad_comm** out) -> hexad_code {
    *out = nullptr;
    return HEXAD_OK;
  };
  host.kv_put = [](hexad_call* call, const char*, const void*, uint64_t) { return no_group(call); };
  host.kv_get = [](hexad_call* call, const char*, int64_t, const void**, uint64_t*) { return no_group(call); };
  host.range_push = [](hexad_call*, const char*) {};
  host.range_pop = [](hexad_call*) {};
}

}  // namespace hexad::plugin
