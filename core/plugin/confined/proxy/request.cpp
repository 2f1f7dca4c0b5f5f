#include "core/plugin/confined/proxy/request.hpp"

#include <algorithm>

#include "lib/base/error.hpp"
#include "core/plugin/host/staging.hpp"

namespace hexad::plugin::confined {
namespace {

constexpr uint64_t kPage = 4096;

uint64_t aligned(uint64_t offset) { return (offset + kTensorsBegin - 1) / kTensorsBegin * kTensorsBegin; }

// Grows by half at least, so that batches that lengthen step by step do not make new memory each time.
void make_room(Arena& arena, uint64_t bytes) {
  if (bytes <= arena.memory.size()) return;
  const uint64_t wanted = std::max(bytes, arena.memory.size() + arena.memory.size() / 2);
  arena = {};  // first the old one goes
  arena.memory = SharedMemory::make((wanted + kPage - 1) / kPage * kPage);
}

// The same tensor in shared memory.
DLTensor view(const DLTensor& tensor, const SharedMemory& memory, uint64_t offset) {
  DLTensor shared = tensor;
  shared.data = memory.data() + offset;
  shared.byte_offset = 0;
  shared.device = {kDLCPU, 0};
  return shared;
}

}  // namespace

void Request::add(std::vector<Placed>& list, const DLTensor* tensor, uint64_t& end) {
  TensorHead head;
  head.present = tensor != nullptr;
  if (!tensor) {
    arguments.put(head);
    return;
  }
  if (!contiguous(*tensor)) fail(ErrorKind::data, "a tensor is not contiguous");
  head.offset = end;
  head.dtype = tensor->dtype;
  arguments.put(head);
  arguments.array(tensor->shape, tensor->ndim);
  list.push_back({tensor, end});
  end = aligned(end + tensor_bytes(*tensor));
}

void Request::in(const hexad_named_tensor* tensors, int64_t count) {
  arguments.put(count);
  for (int64_t i = 0; i < count; ++i) {
    arguments.text(tensors[i].name);
    arguments.put(tensors[i].axis);
    in(tensors[i].tensor);
    in(tensors[i].lengths);
  }
}

void Request::copy(const DLTensor& from, const DLTensor& to) const {
  DLTensor destination = to;
  if (tensor_bytes(from) > 0) Staging(runtime_).copy(from, destination);
}

void Request::place(Arena& down, Arena& up) const {
  make_room(down, inputs_end_);
  make_room(up, outputs_end_);
  for (const Placed& input : inputs_) copy(*input.tensor, view(*input.tensor, down.memory, input.offset));
}

void Request::collect(const SharedMemory& up) const {
  for (const Placed& output : outputs_) copy(view(*output.tensor, up, output.offset), *output.tensor);
}

}  // namespace hexad::plugin::confined
