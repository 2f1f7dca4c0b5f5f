// Bytes of CPU tensors that this thread allocates while the object lives.
#pragma once
#include <algorithm>
#include <memory>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

namespace hexad::modeling {

class AllocatedBytes {
 public:
  AllocatedBytes() : counter_(std::make_shared<Counter>()), guard_(c10::DebugInfoKind::PROFILER_STATE, counter_) {}

  int64_t now() const { return counter_->now; }      // beyond those at the beginning
  int64_t peak() const { return counter_->peak; }    // likewise
  int64_t total() const { return counter_->total; }  // of all allocations

 private:
  struct Counter : c10::MemoryReportingInfoBase {
    int64_t now = 0, peak = 0, total = 0;
    void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) override {
      now += bytes;
      total += std::max<int64_t>(bytes, 0);
      peak = std::max(peak, now);
    }
    bool memoryProfilingEnabled() const override { return true; }
  };
  std::shared_ptr<Counter> counter_;
  c10::DebugInfoGuard guard_;
};

}  // namespace hexad::modeling
