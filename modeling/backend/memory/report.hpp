// What a backend says of its memory, from any thread while a call runs.
#pragma once
#include <hexad/abi.h>

#include <mutex>

#include "modeling/backend/memory/meter.hpp"

namespace hexad::modeling {

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
