// What the meter counts on a CPU is what tensors are allocated, at its peak and after, on every thread.
#include "modeling/backend/memory/meter.hpp"

#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <thread>

namespace hexad::modeling {
namespace {

// The system's allocator rounds up, large blocks to pages.
void check_bytes(int64_t got, int64_t wanted, int64_t tensors = 1) {
  CHECK(got >= wanted);
  CHECK(got <= wanted + (wanted < 100000 ? 64 : 4096) * tensors);
}

}  // namespace

TEST_CASE("the meter counts bytes as they are allocated and freed") {
  const at::Tensor before = at::ones({1000});  // not counted, and freed without harm
  MemoryMeter meter(at::kCPU);
  const int64_t start = meter.allocated_bytes();
  CHECK(meter.peak_bytes() == 0);
  at::Tensor kept;
  {
    const MemoryMeter::Span span(meter);
    kept = at::ones({100}, at::kFloat);
    check_bytes(meter.allocated_bytes() - start, 400);
    { const at::Tensor transient = at::empty({1000}, at::kDouble); }
    { const at::Tensor smaller = at::empty({500}, at::kDouble); }
    CHECK(at::empty({0}).numel() == 0);
    check_bytes(meter.allocated_bytes() - start, 400);
  }
  check_bytes(meter.peak_bytes(), 8000);  // beyond the 400 that stay
  CHECK(meter.reserved_bytes() == meter.allocated_bytes());
  { const MemoryMeter::Span smaller_span(meter); }
  check_bytes(meter.peak_bytes(), 8000);
  kept.resize_({200});
  check_bytes(meter.allocated_bytes() - start, 800);
  CHECK(kept.slice(0, 0, 100).equal(at::ones({100})));
  CHECK(reinterpret_cast<uintptr_t>(kept.data_ptr()) % 64 == 0);
  kept.reset();
  CHECK(meter.allocated_bytes() == start);
}

TEST_CASE("a peak that several threads make together, and memory freed on another thread") {
  MemoryMeter meter(at::kCPU);
  const int64_t start = meter.allocated_bytes();
  {
    const MemoryMeter::Span span(meter);
    std::vector<at::Tensor> made(4);
    std::vector<std::thread> threads;
    for (at::Tensor& tensor : made) threads.emplace_back([&] { tensor = at::empty({1 << 20}, at::kByte); });
    for (std::thread& thread : threads) thread.join();
    check_bytes(meter.allocated_bytes() - start, 4 << 20, 4);
    std::thread([&] { made.clear(); }).join();
  }
  CHECK(meter.allocated_bytes() == start);
  check_bytes(meter.peak_bytes(), 4 << 20, 4);
}

}  // namespace hexad::modeling
