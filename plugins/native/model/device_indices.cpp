#include "plugins/native/model/device_indices.hpp"

#include <ATen/Functions.h>

#include <algorithm>

namespace hexad::native {

at::Tensor device_indices(const std::vector<int64_t>& values, at::Device device) {
  const auto options = at::TensorOptions(at::kLong).pinned_memory(device.is_cuda());
  const at::Tensor host = at::empty({static_cast<int64_t>(values.size())}, options);
  std::copy(values.begin(), values.end(), host.mutable_data_ptr<int64_t>());
  return host.to(device, at::kLong, /*non_blocking=*/true);
}

}  // namespace hexad::native
