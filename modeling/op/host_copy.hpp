// Small things on their way between the host and a device, without the host waiting.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

namespace hexad::modeling {

// A copy of `host` on `device`. To a GPU it goes through page-locked memory and is enqueued on the current stream; what
// `host` refers to may be changed or freed at once.
at::Tensor on_device(const at::Tensor& host, at::Device device);
// int64 [n].
at::Tensor on_device(const std::vector<int64_t>& values, at::Device device);

// A few numbers on their way to the host, which does other things meanwhile.
class HostCopy {
 public:
  // int64; the copy comes behind what the current stream has been given.
  explicit HostCopy(const at::Tensor& values);
  // The numbers, flattened. Waits for the copy, and for nothing that the stream was given later.
  std::vector<int64_t> wait();

 private:
  at::Tensor host_;
  std::optional<c10::Event> copied_;
};

}  // namespace hexad::modeling
