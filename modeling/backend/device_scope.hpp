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

// While it lives, the call's stream is LibTorch's current one. Nothing orders what runs on another stream, so whatever
// touches the device is inside of one: the constructor of an instance too.
class StreamScope {
 public:
  StreamScope(const sdk::Call& call, at::Device device) {
    if (!device.is_cuda()) return;
    // c10 names an external stream by its address.
    const auto id = reinterpret_cast<intptr_t>(call.stream({kDLCUDA, device.index()}));
    stream_.emplace(c10::Stream(c10::Stream::UNSAFE, device, static_cast<c10::StreamId>(id)));
  }

 private:
  std::optional<c10::StreamGuard> stream_;
};

// Runs `body` on the call's stream. What LibTorch and modeling throw leaves as sdk::Error.
template <typename Body>
void on_device(const sdk::Call& call, at::Device device, Body&& body) {
  const StreamScope stream(call, device);
  guarded(body);
}

}  // namespace hexad::modeling
