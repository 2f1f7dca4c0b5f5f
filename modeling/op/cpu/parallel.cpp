#include "modeling/op/cpu/parallel.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

namespace hexad::modeling::cpu {
namespace {

// A thread that shares its core with other work takes fewer of them, and the others need not wait for it.
constexpr int64_t kPartsPerThread = 8;

}  // namespace

void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  const int64_t threads = std::min<int64_t>((count + grain - 1) / grain, at::get_num_threads());
  if (threads <= 1) return count > 0 ? body(0, count) : void();
  const int64_t parts = std::min(threads * kPartsPerThread, count);
  parallel_each(parts, threads, [&](int64_t i) { body(i * count / parts, (i + 1) * count / parts); });
}

void parallel_each(int64_t count, int64_t max_threads, const std::function<void(int64_t)>& body) {
  std::atomic<int64_t> next{0};
  const int64_t threads = std::min<int64_t>({count, max_threads, at::get_num_threads()});
  at::parallel_for(0, threads, 1, [&](int64_t, int64_t) {
    for (int64_t item = next++; item < count; item = next++) body(item);
  });
}

}  // namespace hexad::modeling::cpu
