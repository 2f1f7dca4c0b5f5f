#include "modeling/backend/tensor_view.hpp"

#include <ATen/DLConvertor.h>
#include <ATen/Functions.h>
#include <hexad/services.hpp>

namespace hexad::modeling {

at::Tensor from_dl(const DLTensor* tensor, const char* name) {
  if (!tensor) sdk::fail(HEXAD_INVALID_ARGUMENT, "the tensor '%s' is missing", name);
  const at::Device device = tensor->device.device_type == kDLCPU
                                ? at::Device(at::kCPU)
                                : at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(tensor->device.device_id));
  return at::from_blob(static_cast<char*>(tensor->data) + tensor->byte_offset,
                       at::IntArrayRef(tensor->shape, static_cast<size_t>(tensor->ndim)),
                       at::TensorOptions(device).dtype(at::toScalarType(tensor->dtype)));
}

DLTensor to_dl(const at::Tensor& tensor) {
  DLTensor result{};
  result.data = tensor.data_ptr();
  result.device = at::torchDeviceToDLDevice(tensor.device());
  result.ndim = static_cast<int32_t>(tensor.dim());
  result.dtype = dl_dtype(tensor.scalar_type());
  result.shape = const_cast<int64_t*>(tensor.sizes().data());  // DLPack has no const; nobody writes shapes
  return result;
}

DLDataType dl_dtype(at::ScalarType dtype) {
  const auto bits = static_cast<uint8_t>(8 * c10::elementSize(dtype));
  if (dtype == at::kBFloat16) return {kDLBfloat, bits, 1};
  return {static_cast<uint8_t>(c10::isFloatingType(dtype) ? kDLFloat : kDLInt), bits, 1};
}

}  // namespace hexad::modeling
