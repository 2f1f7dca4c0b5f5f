// The table of runtime.h.
#include <torch/version.h>

#include "runtime/device.hpp"
#include "runtime/error.hpp"
#include "runtime/group/collective.hpp"
#include "runtime/group/process_group.hpp"
#include "runtime/memory.hpp"
#include "runtime/session.hpp"
#include "runtime/trace.hpp"

#define HEXAD_STRING_(x) #x
#define HEXAD_STRING(x) HEXAD_STRING_(x)

namespace hexad::runtime {
namespace {

const char* libtorch_version() {
  return HEXAD_STRING(TORCH_VERSION_MAJOR) "." HEXAD_STRING(TORCH_VERSION_MINOR) "." HEXAD_STRING(TORCH_VERSION_PATCH);
}

constexpr hexad_runtime make_table() {
  hexad_runtime table{};
  table.start = start;
  table.stop = stop;
  table.error = last_error;
  table.libtorch_version = libtorch_version;
  table.cuda_version = cuda::version;
  table.cuda_device_count = cuda::device_count;
  table.cuda_device_name = cuda::device_name;
  table.cuda_bytes_used = cuda::bytes_used;
  table.stream = stream;
  table.alloc = alloc;
  table.free = free;
  table.tensor_new = tensor_new;
  table.copy = copy;
  table.comm_axis = comm_axis;
  table.comm_new = comm_new;
  table.comm_rank = comm_rank;
  table.comm_size = comm_size;
  table.all_reduce = all_reduce;
  table.all_gather = all_gather;
  table.reduce_scatter = reduce_scatter;
  table.broadcast = broadcast;
  table.barrier = barrier;
  table.comm_across = comm_across;
  table.exchange = exchange;
  table.comm_native = comm_native;
  table.kv_put = kv_put;
  table.kv_get = kv_get;
  table.trace_start = trace_start;
  table.trace_save = trace_save;
  table.range_push = cuda::range_push;
  table.range_pop = cuda::range_pop;
  return table;
}

}  // namespace
}  // namespace hexad::runtime

const hexad_runtime* hexad_runtime_table(void) {
  static constexpr hexad_runtime table = hexad::runtime::make_table();
  return &table;
}
