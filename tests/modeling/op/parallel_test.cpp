#include "modeling/op/cpu/parallel.hpp"

#include <ATen/Parallel.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

namespace hexad::modeling {
namespace {

struct Threads {
  int before = at::get_num_threads();
  explicit Threads(int count) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before); }
};

// Whether `others` more threads come to the same place before the deadline.
bool meets(std::atomic<int>& here, int others) {
  ++here;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (here <= others && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  return here > others;
}

TEST_CASE("parallel_for: bodies run at the same time, on LibTorch's threads") {
  const Threads threads(2);
  std::atomic<int> here{0};
  std::atomic<bool> met{true};
  cpu::parallel_each(2, 2, [&](int64_t) {
    if (!meets(here, 1)) met = false;
  });
  CHECK(met);
  here = 0;
  cpu::parallel_for(2, 1, [&](int64_t begin, int64_t end) {
    CHECK(end == begin + 1);
    if (!meets(here, 1)) met = false;
  });
  CHECK(met);
}

TEST_CASE("parallel_for: every item once, whatever grain, threads and count") {
  for (const int count_of_threads : {1, 2, 3}) {
    const Threads threads(count_of_threads);
    for (const int64_t count : {0, 1, 7, 16, 1000}) {
      for (const int64_t grain : {1, 5, 16, 2000}) {
        std::vector<std::atomic<int>> seen(count);
        cpu::parallel_for(count, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++seen[i];
        });
        cpu::parallel_each(count, grain, [&](int64_t i) { ++seen[i]; });
        for (const std::atomic<int>& times : seen) REQUIRE(times == 2);
      }
    }
  }
}

TEST_CASE("parallel_for: what a body throws arrives") {
  const Threads threads(2);
  CHECK_THROWS_WITH(cpu::parallel_each(4, 4,
                                       [](int64_t i) {
                                         if (i == 3) throw std::runtime_error("item 3");
                                       }),
                    "item 3");
}

}  // namespace
}  // namespace hexad::modeling
