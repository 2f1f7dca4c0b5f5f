#include "core/plugin/host/staging.hpp"

#include <cstring>

#include "lib/base/error.hpp"

namespace hexad::plugin {
namespace {

uint64_t byte_count(const DLTensor& tensor) {
  return static_cast<uint64_t>(element_count(tensor)) * tensor.dtype.bits * tensor.dtype.lanes / 8;
}

char* bytes(const DLTensor& tensor) { return static_cast<char*>(tensor.data) + tensor.byte_offset; }

bool on_host(const DLTensor& tensor) {
  return tensor.device.device_type == kDLCPU || tensor.device.device_type == kDLCUDAHost;
}

}  // namespace

bool same_device(DLDevice a, DLDevice b) {
  return a.device_type == b.device_type && (a.device_type == kDLCPU || a.device_id == b.device_id);
}

int64_t element_count(const DLTensor& tensor) {
  int64_t count = 1;
  for (int32_t d = 0; d < tensor.ndim; ++d) count *= tensor.shape[d];
  return count;
}

bool contiguous(const DLTensor& tensor) {
  if (!tensor.strides) return true;
  int64_t expected = 1;
  for (int32_t d = tensor.ndim; d-- > 0;) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != expected) return false;
    expected *= tensor.shape[d];
  }
  return true;
}

Staging::~Staging() {
  for (sdk::TensorHandle* managed : device_tensors_) managed->deleter(managed);
}

DLTensor* Staging::zeros(DLDataType dtype, std::vector<int64_t> shape, DLDevice device) {
  auto made = std::make_unique<HostTensor>();
  made->shape = std::move(shape);
  made->strides.resize(made->shape.size());
  int64_t stride = 1;
  for (size_t d = made->shape.size(); d-- > 0; stride *= made->shape[d]) made->strides[d] = stride;
  DLTensor& tensor = made->tensor;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int32_t>(made->shape.size());
  tensor.dtype = dtype;
  tensor.shape = made->shape.data();
  tensor.strides = made->strides.data();
  made->memory.resize(byte_count(tensor) / sizeof(double) + 1);
  tensor.data = made->memory.data();
  host_tensors_.push_back(std::move(made));
  return on(&tensor, device);
}

DLTensor* Staging::zeros_like(const DLTensor& prototype, DLDevice device) {
  return zeros(prototype.dtype, {prototype.shape, prototype.shape + prototype.ndim}, device);
}

DLTensor* Staging::on(DLTensor* source, DLDevice device) {
  if (same_device(source->device, device)) return source;
  if (!runtime_)
    fail(ErrorKind::worker, "a tensor lies on a device that this process does not have (type {})",
         static_cast<int>(source->device.device_type));
  DLTensor prototype = *source;
  prototype.device = device;
  sdk::TensorHandle* made = nullptr;
  if (runtime_->tensor_new(&prototype, &made) != HEXAD_OK)
    fail(ErrorKind::worker, "staging a tensor: {}", runtime_->error());
  device_tensors_.push_back(made);
  copy(*source, made->dl_tensor);
  return &made->dl_tensor;
}

void Staging::copy(const DLTensor& source, DLTensor& destination) {
  if (on_host(source) && on_host(destination)) {
    std::memcpy(bytes(destination), bytes(source), byte_count(source));
  } else if (!runtime_ || runtime_->copy(&source, &destination) != HEXAD_OK) {
    fail(ErrorKind::worker, "copying a tensor between devices: {}", runtime_ ? runtime_->error() : "no device here");
  }
}

void Staging::fill_zero(DLTensor& tensor) {
  if (on_host(tensor)) {
    if (byte_count(tensor) > 0) std::memset(bytes(tensor), 0, byte_count(tensor));
  } else {
    copy(*zeros_like(tensor, {kDLCPU, 0}), tensor);
  }
}

}  // namespace hexad::plugin
