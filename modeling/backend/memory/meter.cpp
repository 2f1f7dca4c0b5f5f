#include "modeling/backend/memory/meter.hpp"

#include <c10/core/CPUAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>

namespace hexad::modeling {
namespace {

// Counts what another allocator gives, in bytes that the system's allocator set aside. Data and context of a block are
// one pointer, as LibTorch's kernels want of it (raw_allocate).
class CountingAllocator : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* base) : base_(base) { free_ = base->raw_deleter(); }

  c10::DataPtr allocate(size_t bytes) override {
    c10::DataPtr given = base_->allocate(bytes);
    void* const block = given.get();
    if (!block) return given;
    given.release_context();
    const int64_t now = in_use_ += usable_bytes(block);
    int64_t highest = highest_;
    while (now > highest && !highest_.compare_exchange_weak(highest, now)) {
    }
    return {block, block, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

  int64_t in_use() const { return in_use_; }
  int64_t highest() const { return highest_; }
  void reset_highest() { highest_ = in_use_.load(); }

 private:
  static int64_t usable_bytes(void* block) { return static_cast<int64_t>(malloc_usable_size(block)); }
  static void release(void* block) {
    if (!block) return;
    in_use_ -= usable_bytes(block);
    free_(block);
  }

  c10::Allocator* base_;
  static inline c10::DeleterFnPtr free_ = nullptr;
  static inline std::atomic<int64_t> in_use_ = 0, highest_ = 0;
};

// Never destroyed: tensors may outlive everything.
CountingAllocator& cpu_counter() {
  static CountingAllocator& counter = []() -> CountingAllocator& {
    auto* const made = new CountingAllocator(c10::GetCPUAllocator());
    c10::SetCPUAllocator(made);
    return *made;
  }();
  return counter;
}

constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);

c10::DeviceAllocator& device_allocator(at::Device device) { return *c10::getDeviceAllocator(device.type()); }

}  // namespace

MemoryMeter::MemoryMeter(at::Device device) : device_(device) {
  if (device.is_cpu()) cpu_counter();
}

MemoryMeter::Span::Span(MemoryMeter& meter) : meter_(meter) {
  if (meter.device_.is_cpu()) {
    cpu_counter().reset_highest();
  } else {
    device_allocator(meter.device_).resetPeakStats(meter.device_.index());
  }
}

MemoryMeter::Span::~Span() {
  meter_.peak_bytes_ = std::max(meter_.peak_bytes_, meter_.highest_bytes() - meter_.allocated_bytes());
}

int64_t MemoryMeter::allocated_bytes() const {
  if (device_.is_cpu()) return cpu_counter().in_use();
  return device_allocator(device_).getDeviceStats(device_.index()).allocated_bytes[kAll].current;
}

int64_t MemoryMeter::reserved_bytes() const {
  if (device_.is_cpu()) return cpu_counter().in_use();
  return device_allocator(device_).getDeviceStats(device_.index()).reserved_bytes[kAll].current;
}

int64_t MemoryMeter::highest_bytes() const {
  if (device_.is_cpu()) return cpu_counter().highest();
  return device_allocator(device_).getDeviceStats(device_.index()).allocated_bytes[kAll].peak;
}

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
