// Tensors that live for one call: copies of the caller's in the memory that a plugin wants, and zeroed outputs.
#pragma once
#include <memory>
#include <vector>

#include <hexad/abi.h>
#include <hexad/handle.hpp>

#include "runtime/runtime.h"

namespace hexad::plugin {

bool same_device(DLDevice a, DLDevice b);
int64_t element_count(const DLTensor& tensor);
bool contiguous(const DLTensor& tensor);

// Owns what it makes until it is destroyed. Without a runtime only the CPU exists. Failures throw Error(worker).
class Staging {
 public:
  explicit Staging(const hexad_runtime* runtime) : runtime_(runtime) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // A contiguous tensor of zeros.
  DLTensor* zeros(DLDataType dtype, std::vector<int64_t> shape, DLDevice device);
  DLTensor* zeros_like(const DLTensor& prototype, DLDevice device);
  // `source` itself if it lies on `device`, else a copy there.
  DLTensor* on(DLTensor* source, DLDevice device);

  // Same dtype and size, any devices.
  void copy(const DLTensor& source, DLTensor& destination);
  void fill_zero(DLTensor& tensor);

 private:
  struct HostTensor {
    DLTensor tensor{};
    std::vector<int64_t> shape, strides;
    std::vector<double> memory;  // doubles for their alignment
  };
  std::vector<std::unique_ptr<HostTensor>> host_tensors_;
  std::vector<sdk::TensorHandle*> device_tensors_;
  const hexad_runtime* runtime_;
};

}  // namespace hexad::plugin
