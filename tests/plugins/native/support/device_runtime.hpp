// The part of a device half that the generator asks for: a stream of its own, where a GPU is present.
#pragma once
#include <c10/core/impl/VirtualGuardImpl.h>

#include "runtime/runtime.h"
#include "tests/modeling/support/devices.hpp"

namespace native_test {

// The whole device half, in a process that is one rank of several; null in others.
inline const hexad_runtime*& rank_runtime() {
  static const hexad_runtime* table = nullptr;
  return table;
}

// Null without a GPU.
inline const hexad_runtime* device_runtime() {
  if (rank_runtime()) return rank_runtime();
  static const bool present = hexad::modeling::test_devices().size() > 1;
  static const hexad_runtime table = [] {
    hexad_runtime result{};
    result.stream = [](int32_t device_type, int32_t device_id) -> void* {
      if (device_type != kDLCUDA) return nullptr;
      static const c10::Stream stream =
          c10::impl::VirtualGuardImpl(c10::kCUDA)
              .getStreamFromGlobalPool(at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(device_id)),
                                       /*isHighPriority=*/false);
      return stream.native_handle();
    };
    return result;
  }();
  return present ? &table : nullptr;
}

}  // namespace native_test
