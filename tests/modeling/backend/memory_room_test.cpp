// Room for what stays: of what calls have needed, and of what a GPU has.
#include "modeling/backend/memory_room.hpp"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <cmath>

namespace hexad::modeling {
namespace {

TEST_CASE("a call is taken to need what the largest of its kind used, in proportion to its tokens, and no less") {
  MemoryNeed need;
  CHECK_FALSE(need.known());
  need.fail();
  CHECK((need.known() && !need.measured()));
  CHECK(need.of(100) == 0);
  need.learn(1000, 50);
  CHECK((need.known() && need.measured()));
  CHECK(need.of(50) == 1000);
  CHECK(need.of(100) == 2000);
  CHECK(need.of(10) == 1000);
  need.learn(900, 10);
  CHECK(need.of(100) == 2000);
  need.learn(1500, 100);
  CHECK(need.of(100) == 1500);
}

TEST_CASE("a call that used nothing, or had no tokens, is known too") {
  MemoryNeed need;
  need.learn(-5, 0);
  CHECK(need.known());
  CHECK(need.of(7) == 0);
  need.learn(10, 0);
  CHECK(need.of(3) == 30);
}

// Unused is what the system has free and what the allocator holds without use, less at least the margin of 4 GiB.
TEST_CASE("what is in use on a GPU is no room") {
  if (!at::globalContext().hasCUDA()) return;
  const at::Device device(at::kCUDA, 0);
  at::empty({1}, device);  // the allocator is there
  const MemoryMeter meter(device);
  const auto bytes = int64_t(1) << 30;
  const double before = unused_bytes(meter, device), slack = 0.05 * double(bytes);
  at::Tensor held = at::empty({bytes}, at::TensorOptions(device).dtype(at::kByte));
  CHECK(std::abs(before - unused_bytes(meter, device) - double(bytes)) <= slack);
  held = at::Tensor();  // the allocator keeps it
  CHECK(std::abs(before - unused_bytes(meter, device)) <= slack);
}

}  // namespace
}  // namespace hexad::modeling
