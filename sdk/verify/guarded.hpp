// Memory whose neighbourhood is watched, and tensors over it.
#pragma once
#include <hexad/abi.h>

#include <cstring>
#include <string>
#include <vector>

namespace hexad::verify {

// `size` zero bytes between two canaries, aligned to 64.
class Guarded {
 public:
  explicit Guarded(size_t size) : size_(size), memory_(size + 3 * kCanary, kMark) {
    const auto begin = reinterpret_cast<uintptr_t>(memory_.data()) + kCanary;
    offset_ = (begin + kCanary - 1) / kCanary * kCanary - (begin - kCanary);
    std::memset(data(), 0, size);
  }
  void* data() { return memory_.data() + offset_; }
  const void* data() const { return memory_.data() + offset_; }
  size_t size() const { return size_; }

  // True if every byte outside is as it was.
  bool intact() const {
    for (size_t i = 0; i < memory_.size(); ++i) {
      const bool inside = i >= offset_ && i < offset_ + size_;
      if (!inside && memory_[i] != kMark) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kCanary = 64;
  static constexpr unsigned char kMark = 0xC5;
  size_t size_, offset_ = 0;
  std::vector<unsigned char> memory_;
};

// A row-major tensor of one or two dimensions in guarded host memory.
class GuardedTensor {
 public:
  GuardedTensor(DLDataType dtype, std::vector<int64_t> shape)
      : shape_(std::move(shape)), strides_(shape_.size(), 1), memory_(bytes(dtype, shape_)) {
    for (size_t d = shape_.size(); d-- > 1;) strides_[d - 1] = strides_[d] * shape_[d];
    tensor_ = {
        memory_.data(), {kDLCPU, 0}, static_cast<int32_t>(shape_.size()), dtype, shape_.data(), strides_.data(), 0};
  }
  GuardedTensor(const GuardedTensor&) = delete;
  GuardedTensor& operator=(const GuardedTensor&) = delete;

  DLTensor* tensor() { return &tensor_; }
  template <typename T>
  T* data() {
    return static_cast<T*>(memory_.data());
  }
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

}  // namespace hexad::verify
