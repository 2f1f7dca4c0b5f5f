#include "plugins/native/cpu/parallel.hpp"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

namespace hexad::native::cpu {

void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  at::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) { body(begin, end); });
}

void parallel_each(int64_t count, int64_t max_threads, const std::function<void(int64_t)>& body) {
  std::atomic<int64_t> next{0};
  const int64_t threads = std::min<int64_t>({count, max_threads, at::get_num_threads()});
  at::parallel_for(0, threads, 1, [&](int64_t, int64_t) {
    for (int64_t item = next++; item < count; item = next++) body(item);
  });
}

}  // namespace hexad::native::cpu
