#include "modeling/backend/memory/report.hpp"

namespace hexad::modeling {

void MemoryReport::update(hexad_memory_stats held) {
  held.activation_peak_bytes = meter_.peak_bytes();
  held.allocated_bytes = meter_.allocated_bytes();
  held.reserved_bytes = meter_.reserved_bytes();
  const std::lock_guard lock(mutex_);
  last_ = held;
}

void MemoryReport::read(hexad_memory_stats& out) const {
  const std::lock_guard lock(mutex_);
  out.parameter_bytes = last_.parameter_bytes;
  out.gradient_bytes = last_.gradient_bytes;
  out.optimizer_bytes = last_.optimizer_bytes;
  out.activation_peak_bytes = last_.activation_peak_bytes;
  out.allocated_bytes = last_.allocated_bytes;
  out.reserved_bytes = last_.reserved_bytes;
}

}  // namespace hexad::modeling
