// Room for what stays: of what calls have needed, and of what a GPU has.
#include "modeling/backend/memory/room.hpp"
#include "tests/support/report.hpp"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

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

// A call as a meter sees it: activations of a micro-batch go while its gradients come, and gradients stay.
CallUse call_of(const std::vector<int64_t>& tokens, int64_t gradients, int64_t stays, bool stayed) {
  CallUse use;
  use.stayed = stayed, use.first_tokens = tokens[0], use.first_left = gradients;
  int64_t highest = 0;
  for (size_t b = 0; b < tokens.size(); ++b) {
    // What stays comes with the first micro-batch, behind its peak, or with the second.
    highest = std::max(highest, tokens[b] + (b > 0 ? gradients + stays : 0));
    if (b == 0) use.first_peak = highest;
    if (b > 0) use.later_tokens = std::max(use.later_tokens, tokens[b]);
  }
  use.peak = highest - stays;
  return use;
}

TEST_CASE("what a call's later micro-batches need is never taken for less, whichever of them was the longest") {
  const int64_t gradients = 70, stays = 40;
  for (const std::vector<int64_t>& tokens :
       {std::vector<int64_t>{100}, {100, 100}, {100, 10}, {10, 100}, {200, 1, 1}, {40, 100, 90}}) {
    for (const std::vector<int64_t>& next :
         {std::vector<int64_t>{100, 100}, {10, 100}, {100, 10}, {300}, {5, 5}, {250, 20}}) {
      MemoryNeed need;
      need.learn(call_of(tokens, gradients, tokens.size() > 1 ? stays : 0, false));
      const int64_t longest = *std::max_element(tokens.begin(), tokens.end());
      CHECK(need.of(longest) == double(longest + gradients));
      need.learn(call_of(next, gradients, stays, true));
      for (const int64_t size : {5, 10, 100, 300}) {
        CAPTURE(tokens[0]);
        CAPTURE(next[0]);
        CHECK(need.of(size) >= double(size + gradients));
      }
    }
  }
}

TEST_CASE(
    "of a call without micro-batches, or a single one for which much stayed, nothing is learned but that it was") {
  MemoryNeed need;
  need.learn(CallUse{});
  CHECK((need.known() && need.of(10) == 0));
  need.learn(CallUse{.first_peak = 90, .first_left = 5, .first_tokens = 10, .peak = 50, .stayed = true});
  CHECK(need.of(10) == 0);
}

// Unused is what the system has free and what the allocator holds without use, less at least the margin of 4 GiB.
TEST_CASE("what is in use on a GPU is no room") {
  if (!at::globalContext().hasCUDA()) return test_report::skipped("needs a GPU");
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
