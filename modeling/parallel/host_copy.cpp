#include "modeling/parallel/host_copy.hpp"

#include <ATen/Functions.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace hexad::modeling {

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
