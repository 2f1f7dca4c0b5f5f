// Bytes in use, measured where tensors are allocated: on a GPU its caching allocator's own count, on a CPU that of an
// allocator which counts what passes through it; and what a backend tells of them.
#pragma once
#include <cstdint>
#include <mutex>

#include <ATen/core/Tensor.h>
#include <hexad/abi.h>

namespace hexad::modeling {

class MemoryMeter {
 public:
  // From now on the tensors that the process allocates on this device are counted.
  explicit MemoryMeter(at::Device device);

  // A stretch of work whose peak is measured. One at a time in a process.
  class Span {
   public:
    explicit Span(MemoryMeter& meter);
    ~Span();
    Span(const Span&) = delete;

   private:
    MemoryMeter& meter_;
  };

  // In use now, and held from the system (the same on a CPU).
  int64_t allocated_bytes() const;
  int64_t reserved_bytes() const;
  // Most in use since the last span began.
  int64_t highest_bytes() const;
  // What a span used at its peak beyond what it left behind; the most of all spans so far, 0 before the first.
  int64_t peak_bytes() const { return peak_bytes_; }

 private:
  at::Device device_;
  int64_t peak_bytes_ = 0;
};

// What a backend says of its memory, from any thread while a call runs.
class MemoryReport {
 public:
  explicit MemoryReport(at::Device device) : meter_(device) {}

  MemoryMeter& meter() { return meter_; }
  // `held`: parameter, gradient and optimizer bytes; the others are the meter's.
  void update(hexad_memory_stats held);
  // hexad_backend_vtable's memory.
  void read(hexad_memory_stats& out) const;

 private:
  MemoryMeter meter_;
  mutable std::mutex mutex_;
  hexad_memory_stats last_{};
};

}  // namespace hexad::modeling
