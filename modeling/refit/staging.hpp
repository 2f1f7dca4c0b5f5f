// Weights laid end to end in a buffer of our own, which one message carries.
#pragma once
#include <cstdint>
#include <vector>

#include "modeling/refit/cuda_driver.hpp"
#include "modeling/refit/weight_names.hpp"

namespace hexad::refit {

class Staging {
 public:
  // `bytes`: what a message of several weights may hold at most.
  explicit Staging(size_t bytes) : wanted_(bytes) {}
  virtual ~Staging() = default;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Room for every weight of the bucket, on that device if it is on one. Whether the memory is another than before.
  bool reserve(Slices slices, DLDevice device);
  // Copies the first of `slices` on the call's stream, as many as fit (one at least), and waits; their sizes in bytes.
  std::vector<int64_t> fill(const sdk::Call& call, Slices slices);

  virtual uintptr_t address() const = 0;
  size_t size() const { return size_; }

 protected:
  virtual bool grow(size_t bytes, DLDevice device) = 0;
  virtual void copy(const sdk::Call& call, size_t at, const DLTensor& tensor) = 0;
  virtual void finish(const sdk::Call& call) = 0;

  const size_t wanted_;
  size_t size_ = 0;
};

// On the GPU of the weights: memory of cuMemAlloc, as a caching allocator's may be of a kind that no other process can
// map. All of `bytes` from the start: another process may have mapped it.
class GpuStaging : public Staging {
 public:
  using Staging::Staging;
  ~GpuStaging() override;

  uintptr_t address() const override { return address_; }
  int device_id() const { return device_id_; }

 private:
  bool grow(size_t bytes, DLDevice device) override;
  void copy(const sdk::Call& call, size_t at, const DLTensor& tensor) override;
  void finish(const sdk::Call& call) override;
  void free();

  int device_id_ = 0;
  CudaDriver::Pointer address_ = 0;
};

// In memory of the host, wherever the weights lie.
class HostStaging : public Staging {
 public:
  using Staging::Staging;

  uintptr_t address() const override { return reinterpret_cast<uintptr_t>(memory_.data()); }

 private:
  bool grow(size_t bytes, DLDevice device) override;
  void copy(const sdk::Call& call, size_t at, const DLTensor& tensor) override;
  void finish(const sdk::Call&) override {}

  std::vector<std::byte> memory_, from_gpu_;
};

}  // namespace hexad::refit
