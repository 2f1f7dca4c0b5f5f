// Memory, streams, process groups and trace ranges through the runtime.
#include <hexad/handle.hpp>

#include "core/plugin/host/services.hpp"

namespace hexad::plugin {
namespace {

// Set once, before any plugin sees the table.
const hexad_runtime* device_half = nullptr;

// Passes a failing code on with the runtime's text.
hexad_code checked(hexad_call* call, hexad_code code) {
  if (code == HEXAD_OK) return code;
  const char* text = device_half->error();
  return Call::from(call).set_error(code, text ? text : "");
}

void* stream(hexad_call*, int32_t device_type, int32_t device_id) {
  return device_half->stream(device_type, device_id);
}

hexad_code alloc(hexad_call* call, int32_t device_type, int32_t device_id, uint64_t bytes, void** out) {
  return checked(call, device_half->alloc(device_type, device_id, bytes, out));
}
void free_memory(void* pointer, int32_t device_type, int32_t device_id) {
  if (pointer) device_half->free(pointer, device_type, device_id);
}
hexad_code tensor_new(hexad_call* call, const DLTensor* prototype, sdk::TensorHandle** out) {
  return checked(call, device_half->tensor_new(prototype, out));
}

hexad_code comm_axis(hexad_call* call, const char* axis, hexad_comm** out) {
  return checked(call, device_half->comm_axis(axis, out));
}
hexad_code comm_new(hexad_call* call, const int32_t* ranks, int32_t num_ranks, const char* name, hexad_comm** out) {
  return checked(call, device_half->comm_new(ranks, num_ranks, name, out));
}
int32_t comm_rank(const hexad_comm* comm) { return comm ? device_half->comm_rank(comm) : 0; }
int32_t comm_size(const hexad_comm* comm) { return comm ? device_half->comm_size(comm) : 1; }
hexad_code all_reduce(hexad_call* call, hexad_comm* comm, DLTensor* tensor, int32_t op) {
  return checked(call, device_half->all_reduce(comm, tensor, op));
}
hexad_code all_gather(hexad_call* call, hexad_comm* comm, const DLTensor* in, DLTensor* out) {
  return checked(call, device_half->all_gather(comm, in, out));
}
hexad_code reduce_scatter(hexad_call* call, hexad_comm* comm, const DLTensor* in, DLTensor* out) {
  return checked(call, device_half->reduce_scatter(comm, in, out));
}
hexad_code broadcast(hexad_call* call, hexad_comm* comm, DLTensor* tensor, int32_t root) {
  return checked(call, device_half->broadcast(comm, tensor, root));
}
hexad_code barrier(hexad_call* call, hexad_comm* comm) { return checked(call, device_half->barrier(comm)); }
hexad_code comm_native(hexad_call* call, hexad_comm* comm, const char* kind, void** out) {
  return checked(call, device_half->comm_native(comm, kind, out));
}

hexad_code kv_put(hexad_call* call, const char* key, const void* value, uint64_t size) {
  return checked(call, device_half->kv_put(key, value, size));
}
hexad_code kv_get(hexad_call* call, const char* key, int64_t timeout_ms, const void** value, uint64_t* size) {
  const void* bytes = nullptr;
  uint64_t count = 0;
  const hexad_code code = device_half->kv_get(key, timeout_ms, &bytes, &count);
  if (code != HEXAD_OK) return checked(call, code);
  return guarded(call, [&] {
    *value = Call::from(call).keep(std::string(static_cast<const char*>(bytes), count)).data();
    *size = count;
  });
}

void range_push(hexad_call*, const char* name) { device_half->range_push(name); }
void range_pop(hexad_call*) { device_half->range_pop(); }

}  // namespace

void add_runtime_services(hexad_host& host, const hexad_runtime* runtime) {
  device_half = runtime;
  host.stream = stream;
  host.alloc = alloc;
  host.free = free_memory;
  host.tensor_new = tensor_new;
  host.comm_axis = comm_axis;
  host.comm_new = comm_new;
  host.comm_rank = comm_rank;
  host.comm_size = comm_size;
  host.all_reduce = all_reduce;
  host.all_gather = all_gather;
  host.reduce_scatter = reduce_scatter;
  host.broadcast = broadcast;
  host.barrier = barrier;
  host.comm_native = comm_native;
  host.kv_put = kv_put;
  host.kv_get = kv_get;
  host.range_push = range_push;
  host.range_pop = range_pop;
}

}  // namespace hexad::plugin
