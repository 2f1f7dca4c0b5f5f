#include "runtime/memory.hpp"

#include <ATen/DLConvertor.h>
#include <ATen/Functions.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/StreamGuard.h>
#include <fmt/format.h>

#include "runtime/device.hpp"
#include "runtime/error.hpp"

namespace hexad::runtime {
namespace {

at::Device device_of(const DLDevice& device, const char* what) {
  if (device.device_type == kDLCPU) return at::kCPU;
  if (device.device_type == kDLCUDA) return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device.device_id));
  throw Error(HEXAD_INVALID_ARGUMENT, fmt::format("{} lies on device type {}: neither kDLCPU nor kDLCUDA", what,
                                                  static_cast<int>(device.device_type)));
}

at::TensorOptions options_of(const DLTensor& tensor, const char* what) {
  return at::TensorOptions().dtype(at::toScalarType(tensor.dtype)).device(device_of(tensor.device, what));
}

bool contiguous(const DLTensor& tensor) {
  int64_t expected = 1;
  for (int32_t d = tensor.ndim - 1; tensor.strides && d >= 0; --d) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != expected) return false;
    expected *= tensor.shape[d];
  }
  return true;
}

}  // namespace

at::Tensor view(const DLTensor* tensor, const char* what) {
  if (!contiguous(*tensor)) throw Error(HEXAD_INVALID_ARGUMENT, fmt::format("{} is not contiguous", what));
  const at::TensorOptions options = options_of(*tensor, what);
  return at::from_blob(static_cast<char*>(tensor->data) + tensor->byte_offset,
                       at::IntArrayRef(tensor->shape, static_cast<size_t>(tensor->ndim)), options);
}

at::Tensor strided_view(const DLTensor* tensor, const char* what) {
  if (!tensor->strides) return view(tensor, what);
  const auto ndim = static_cast<size_t>(tensor->ndim);
  return at::from_blob(static_cast<char*>(tensor->data) + tensor->byte_offset, at::IntArrayRef(tensor->shape, ndim),
                       at::IntArrayRef(tensor->strides, ndim), options_of(*tensor, what));
}

c10::Stream compute_stream(at::Device device) {
  // c10 names a stream of its pool, seen as an external one, by its address.
  const auto raw = static_cast<c10::StreamId>(reinterpret_cast<intptr_t>(cuda::stream(device.index())));
  return c10::Stream(c10::Stream::UNSAFE, device, raw);
}

void* stream(int32_t device_type, int32_t device_id) {
  return device_type == kDLCUDA ? cuda::stream(device_id) : nullptr;
}

hexad_code alloc(int32_t device_type, int32_t device_id, uint64_t bytes, void** out) {
  return guarded([&] { return fmt::format("alloc of {} bytes", bytes); },
                 [&] {
                   *out = device_type == kDLCUDA ? cuda::allocate(device_id, bytes)
                                                 : c10::GetCPUAllocator()->raw_allocate(bytes);
                 });
}

void free(void* pointer, int32_t device_type, int32_t) {
  if (!pointer) return;
  if (device_type == kDLCUDA)
    cuda::release(pointer);
  else
    c10::GetCPUAllocator()->raw_deallocate(pointer);
}

hexad_code tensor_new(const DLTensor* prototype, DLManagedTensorVersioned** out) {
  return guarded([] { return std::string("tensor_new"); },
                 [&] {
                   const at::IntArrayRef shape(prototype->shape, static_cast<size_t>(prototype->ndim));
                   *out = at::toDLPackVersioned(at::empty(shape, options_of(*prototype, "prototype")));
                 });
}

hexad_code copy(const DLTensor* source, DLTensor* destination) {
  return guarded([] { return std::string("copy"); },
                 [&] {
                   const at::Tensor from = view(source, "source").flatten();
                   const at::Tensor to = view(destination, "destination").flatten();
                   if (from.scalar_type() != to.scalar_type() || from.numel() != to.numel())
                     throw Error(
                         HEXAD_INVALID_ARGUMENT,
                         fmt::format("source has {} elements of {}, destination {} of {}", from.numel(),
                                     c10::toString(from.scalar_type()), to.numel(), c10::toString(to.scalar_type())));
                   const at::Tensor& device_side = from.is_cpu() ? to : from;
                   if (device_side.is_cpu()) {
                     to.copy_(from);
                     return;
                   }
                   const c10::StreamGuard guard(compute_stream(device_side.device()));
                   // Of its own pinned memory the allocator keeps hold until the device has read it: the caller need
                   // not wait.
                   if (from.is_cpu() && !from.is_pinned() && from.numel() > 0)
                     to.copy_(from.pin_memory(), /*non_blocking=*/true);
                   else
                     to.copy_(from, /*non_blocking=*/false);
                 });
}

}  // namespace hexad::runtime
