// How long the current stream's device takes for a call.
#pragma once
#include <ATen/cuda/CUDAEvent.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace benchmarks {

// Milliseconds, median of 20 calls after 3, over `inputs` sets of inputs in turn. All calls are enqueued before the
// first is waited for.
inline double device_ms(const std::function<void(int)>& call, int inputs) {
  constexpr int kWarmUp = 3, kCalls = 20;
  for (int i = 0; i < kWarmUp; ++i) call(i % inputs);
  std::vector<at::cuda::CUDAEvent> events;
  for (int i = 0; i <= kCalls; ++i) events.emplace_back(cudaEventDefault);
  events[0].record();
  for (int i = 0; i < kCalls; ++i) call(i % inputs), events[i + 1].record();
  events.back().synchronize();
  std::vector<double> times;
  for (int i = 0; i < kCalls; ++i) times.push_back(events[i].elapsed_time(events[i + 1]));
  std::nth_element(times.begin(), times.begin() + kCalls / 2, times.end());
  return times[kCalls / 2];
}

}  // namespace benchmarks
