// The edge between the host's calls and LibTorch: streams going in, exceptions coming out.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/Exception.h>
#include <hexad/services.hpp>

#include <optional>

#include "modeling/error.hpp"

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

// Runs `body`; what it throws leaves as sdk::Error with a fitting code and a text without a backtrace.
template <typename Body>
void guarded(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    throw sdk::Error(HEXAD_INVALID_ARGUMENT, error.what());
  } catch (const c10::OutOfMemoryError& error) {
    throw sdk::Error(HEXAD_RESOURCE_EXHAUSTED, error.what_without_backtrace());
  } catch (const c10::DistError& error) {
    throw sdk::Error(HEXAD_UNAVAILABLE, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    const std::string what = error.what_without_backtrace();
    const bool lacks_memory = what.find("DefaultCPUAllocator") != what.npos;  // it has no type of its own
    throw sdk::Error(lacks_memory ? HEXAD_RESOURCE_EXHAUSTED : HEXAD_INTERNAL, what);
  }
}

// Runs `body` on the call's stream. What LibTorch and modeling throw leaves as sdk::Error.
template <typename Body>
void on_device(const sdk::Call& call, at::Device device, Body&& body) {
  const StreamScope stream(call, device);
  guarded(body);
}

}  // namespace hexad::modeling
