// LibTorch's threads, for kernels that include none of its headers and for operators: at::parallel_for is a template
// that runs on one thread wherever it is compiled without OpenMP, so it is called in parallel.cpp alone.
#pragma once
#include <cstdint>
#include <functional>

namespace hexad::modeling::cpu {

// Calls body(begin, end) on parts of [0, count) from several threads at once, a thread for every `grain` items at most;
// parts are handed out as threads become free. Neither the parts nor who takes them may matter to the result.
void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body);

// The same with one item at a time, handed out as threads (at most `max_threads`) become free: for items of unequal
// cost.
void parallel_each(int64_t count, int64_t max_threads, const std::function<void(int64_t item)>& body);

}  // namespace hexad::modeling::cpu
