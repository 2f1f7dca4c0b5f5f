// EventLoop::run.
#pragma once
#include <future>
#include <memory>
#include <stdexcept>

#include "plugins/vllm_bridge/http/event_loop.hpp"

namespace hexad::vllm {

template <typename Function>
auto EventLoop::run(Function&& function) -> decltype(function()) {
  using Result = decltype(function());
  auto task = std::make_shared<std::packaged_task<Result()>>(std::forward<Function>(function));
  std::future<Result> result = task->get_future();
  post([task = std::move(task)] { (*task)(); });
  return result.get();  // a dropped task breaks the promise, which throws
}

}  // namespace hexad::vllm
