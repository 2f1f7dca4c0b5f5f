#include "modeling/op/on_device.hpp"

#include <ATen/Functions.h>

namespace hexad::modeling {

at::Tensor on_device(const at::Tensor& host, at::Device device) {
  if (!device.is_cuda() || !host.is_cpu() || host.numel() == 0) return host.to(device);
  return host.contiguous().pin_memory().to(device, /*non_blocking=*/true);
}

at::Tensor on_device(const std::vector<int64_t>& values, at::Device device) {
  const at::Tensor host =
      at::from_blob(const_cast<int64_t*>(values.data()), {static_cast<int64_t>(values.size())}, at::kLong);
  return device.is_cpu() || values.empty() ? at::tensor(values, at::kLong).to(device) : on_device(host, device);
}

}  // namespace hexad::modeling
