// A few numbers on their way from a device to the host, which does other things meanwhile.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

namespace hexad::modeling {

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
