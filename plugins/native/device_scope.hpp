// The edge between the host's calls and LibTorch: streams going in, exceptions coming out.
#pragma once
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <hexad/services.hpp>

#include <optional>
#include <string>

#include "modeling/error.hpp"

namespace hexad::native {

// The text of an exception, without LibTorch's backtrace.
inline std::string text_of(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  return torch ? torch->what_without_backtrace() : error.what();
}

// Runs `body`. What LibTorch and modeling throw leaves as sdk::Error.
template <typename Body>
void with_sdk_errors(Body&& body) {
  try {
    body();
  } catch (const modeling::Error& error) {
    throw sdk::Error(HEXAD_INVALID_ARGUMENT, error.what());
  } catch (const c10::OutOfMemoryError& error) {
    throw sdk::Error(HEXAD_RESOURCE_EXHAUSTED, text_of(error));
  } catch (const c10::DistError& error) {  // a rank of the replica is lost
    throw sdk::Error(HEXAD_UNAVAILABLE, text_of(error));
  } catch (const c10::Error& error) {
    throw sdk::Error(HEXAD_INTERNAL, text_of(error));
  }
}

// The same with the call's stream as LibTorch's current one.
template <typename Body>
void on_device(const sdk::Call& call, at::Device device, Body&& body) {
  std::optional<c10::StreamGuard> stream;
  if (device.is_cuda()) {
    // c10 names an external stream by its address.
    const auto id = reinterpret_cast<intptr_t>(call.stream({kDLCUDA, device.index()}));
    stream.emplace(c10::Stream(c10::Stream::UNSAFE, device, static_cast<c10::StreamId>(id)));
  }
  with_sdk_errors(body);
}

// Waits for what LibTorch's current stream of the device has been given.
inline void wait_for_stream(at::Device device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.synchronizeStream(guard.getStream(device));
}

}  // namespace hexad::native
