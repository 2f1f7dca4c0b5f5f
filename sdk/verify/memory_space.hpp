// Where the arrays of a case lie, if not in host memory.
#pragma once
#include <hexad/abi.h>

#include <cstddef>
#include <stdexcept>

namespace hexad::verify {

// The device refused, often because of what the plugin had done to it; after an illegal access nothing works any more.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Any thread may use it. Every function throws DeviceError.
class MemorySpace {
 public:
  virtual ~MemorySpace() = default;
  virtual DLDevice where() const = 0;
  virtual void* allocate(size_t bytes) = 0;  // aligned to 256
  virtual void release(void* block) = 0;     // does not throw
  // Ordered after all work of the stream, complete at return.
  virtual void upload(void* block, const void* host, size_t bytes) = 0;
  virtual void download(void* host, const void* block, size_t bytes) = 0;
};

}  // namespace hexad::verify
