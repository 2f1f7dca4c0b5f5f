// Where the arrays of a case lie: memory whose neighbourhood is watched, and tensors over it.
#pragma once
#include <hexad/abi.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace hexad::verify {

// The device refused, often because of what the plugin had done to it; after an illegal access nothing works any more.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Not host memory. Any thread may use it. Every function throws DeviceError.
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

// `size` zero bytes between two canaries, aligned to 64. They lie in host memory, or in a space with an image in host
// memory, which upload and download move.
class Guarded {
 public:
  explicit Guarded(size_t size, MemorySpace* space = nullptr)
      : size_(size), image_(2 + (size + sizeof(Line) - 1) / sizeof(Line)), space_(space) {
    std::memset(image(), kMark, image_size());
    std::memset(data(), 0, size);
    if (space_) block_ = space_->allocate(image_size());
  }
  ~Guarded() {
    if (space_) space_->release(block_);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  // In host memory; what the plugin sees is at `address`.
  void* data() { return &image_[1]; }
  size_t size() const { return size_; }
  void* address() { return space_ ? static_cast<char*>(block_) + sizeof(Line) : data(); }

  void upload() {
    if (space_) space_->upload(block_, image(), image_size());
  }
  void download() {
    if (space_) space_->download(image(), block_, image_size());
  }

  // True if every byte outside is as it was (downloaded).
  bool intact() const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(image_.data());
    const auto marked = [](unsigned char byte) { return byte == kMark; };
    return std::all_of(bytes, bytes + sizeof(Line), marked) &&
           std::all_of(bytes + sizeof(Line) + size_, bytes + image_size(), marked);
  }

  // The whole of it, canaries too: in host memory, and in the space (null: in none).
  void* image() { return image_.data(); }
  size_t image_size() const { return image_.size() * sizeof(Line); }
  void* block() const { return block_; }

 private:
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  static constexpr unsigned char kMark = 0xC5;
  size_t size_;
  std::vector<Line> image_;
  MemorySpace* space_;
  void* block_ = nullptr;
};

// A row-major tensor of one or two dimensions in guarded memory.
class GuardedTensor {
 public:
  GuardedTensor(DLDataType dtype, std::vector<int64_t> shape, MemorySpace* space = nullptr)
      : shape_(std::move(shape)), strides_(shape_.size(), 1), memory_(bytes(dtype, shape_), space) {
    for (size_t d = shape_.size(); d-- > 1;) strides_[d - 1] = strides_[d] * shape_[d];
    const DLDevice device = space ? space->where() : DLDevice{kDLCPU, 0};
    tensor_ = {memory_.address(), device, static_cast<int32_t>(shape_.size()), dtype, shape_.data(),
               strides_.data(),   0};
  }
  GuardedTensor(const GuardedTensor&) = delete;
  GuardedTensor& operator=(const GuardedTensor&) = delete;

  DLTensor* tensor() { return &tensor_; }
  // Its values in host memory.
  template <typename T>
  T* data() {
    return static_cast<T*>(memory_.data());
  }
  Guarded& memory() { return memory_; }
  const Guarded& memory() const { return memory_; }

 private:
  static size_t bytes(DLDataType dtype, const std::vector<int64_t>& shape) {
    size_t count = 1;
    for (int64_t extent : shape) count *= static_cast<size_t>(extent);
    return count * dtype.bits * dtype.lanes / 8;
  }
  std::vector<int64_t> shape_, strides_;
  Guarded memory_;
  DLTensor tensor_{};
};

// A struct of today in the memory of a longer one, with poison behind it.
template <typename T>
class Grown {
 public:
  Grown(const T& value, bool grown) : memory_(sizeof(T) + 256, 0xA5) {
    std::memcpy(memory_.data(), &value, sizeof(T));
    if (grown) get()->struct_size += 256;
  }
  T* get() { return reinterpret_cast<T*>(memory_.data()); }

 private:
  std::vector<unsigned char> memory_;
};

}  // namespace hexad::verify
