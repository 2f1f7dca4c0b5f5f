// What this process holds while something runs: memory and open files.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace hexad::bridge_overhead {

// A line of /proc/self/status, in MiB.
inline double status_mib(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key + ":")) return std::stod(line.substr(key.size() + 1)) / 1024;
  }
  return 0;
}

inline int64_t open_files() {
  int64_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

// Looks every 200 ms, and when it is asked.
class MostOpenFiles {
 public:
  MostOpenFiles()
      : thread_([this] {
          while (!stop_) {
            look();
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
          }
        }) {}
  ~MostOpenFiles() { stop(); }
  int64_t stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    look();
    return most_;
  }

 private:
  void look() { most_ = std::max<int64_t>(most_, open_files()); }

  std::atomic<bool> stop_{false};
  std::atomic<int64_t> most_{0};
  std::thread thread_;
};

}  // namespace hexad::bridge_overhead
