// Work of many parts that may wait for everything else.
#pragma once
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

namespace hexad {

// The calling thread gives way to all others from now on.
inline void give_way() { ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 19); }

// work(i) of each i below `count`, on threads of their own that give way to all others; returns when all is done. What
// `work` throws ends the program.
inline void in_background(size_t count, const std::function<void(size_t)>& work) {
  constexpr size_t kMostThreads = 8;
  std::atomic<size_t> next = 0;
  const auto run = [&] {
    for (size_t i = 0; (i = next++) < count;) work(i);
  };
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  try {
    while (threads.size() < std::min({count, cores, kMostThreads}))
      threads.emplace_back([&] {
        give_way();
        run();
      });
  } catch (const std::system_error&) {  // a limit of the system: with those that there are
    if (threads.empty()) run();
  }
}

}  // namespace hexad
