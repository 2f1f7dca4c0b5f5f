// Small things on their way from the host to a device, without the host waiting.
#pragma once
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace hexad::modeling {

// A copy of `host` on `device`. To a GPU it goes through page-locked memory and is enqueued on the current stream; what
// `host` refers to may be changed or freed at once.
at::Tensor on_device(const at::Tensor& host, at::Device device);
// int64 [n].
at::Tensor on_device(const std::vector<int64_t>& values, at::Device device);

}  // namespace hexad::modeling
