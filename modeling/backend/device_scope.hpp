// The edge between the host's calls and LibTorch: streams going in, exceptions coming out.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/StreamGuard.h>

#include <optional>

#include "modeling/backend/guarded.hpp"

namespace hexad::modeling {

inline at::Device device_of(const sdk::Call& call) {
  const DLDevice device = call.device();
  return device.device_type == kDLCPU ? at::Device(at::kCPU)
                                      : at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device.device_id));
}

// Runs `body` with the call's stream as LibTorch's current one. What LibTorch and modeling throw leaves as sdk::Error.
template <typename Body>
void on_device(const sdk::Call& call, at::Device device, Body&& body) {
  std::optional<c10::StreamGuard> stream;
  if (device.is_cuda()) {
    // c10 names an external stream by its address.
    const auto id = reinterpret_cast<intptr_t>(call.stream({kDLCUDA, device.index()}));
    stream.emplace(c10::Stream(c10::Stream::UNSAFE, device, static_cast<c10::StreamId>(id)));
  }
  guarded(body);
}

}  // namespace hexad::modeling
