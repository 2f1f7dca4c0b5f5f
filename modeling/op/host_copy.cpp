#include "modeling/op/host_copy.hpp"

#include <ATen/Functions.h>
#include <c10/core/impl/VirtualGuardImpl.h>

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

HostCopy::HostCopy(const at::Tensor& values) {
  if (values.is_cpu()) {
    host_ = values.contiguous();
    return;
  }
  host_ = at::empty(values.sizes(), values.options().device(at::kCPU).pinned_memory(true));
  host_.copy_(values, /*non_blocking=*/true);
  copied_.emplace(values.device().type());
  copied_->record(c10::impl::VirtualGuardImpl(values.device().type()).getStream(values.device()));
}

std::vector<int64_t> HostCopy::wait() {
  if (copied_) copied_->synchronize();
  return {host_.const_data_ptr<int64_t>(), host_.const_data_ptr<int64_t>() + host_.numel()};
}

}  // namespace hexad::modeling
