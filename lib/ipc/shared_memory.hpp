// Memory that two processes see: where tensors travel.
#pragma once
#include <cstddef>
#include <cstdint>

namespace hexad::ipc {

// A mapped memory file. One process makes it and seals its size: the other can write what it likes into it, but cannot
// take pages away under the first one's hands. Throws Error(worker) when there is not enough memory.
class SharedMemory {
 public:
  SharedMemory() = default;
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  static SharedMemory make(uint64_t bytes);
  // Of a descriptor that came from the other process, which this object then owns.
  static SharedMemory adopt(int descriptor);

  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }
  int descriptor() const { return descriptor_; }  // -1 if empty

 private:
  SharedMemory(int descriptor, uint64_t size);
  int descriptor_ = -1;
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace hexad::ipc
