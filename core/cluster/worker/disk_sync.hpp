// A checkpoint's files on their way from the page cache to the disk, beside the worker's other work.
#pragma once
#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

namespace hexad::cluster {

// One thread's at a time.
class DiskSync {
 public:
  // Syncs all below these folders, each on its file's own: what a network file system or a quota has against it is said
  // here, and not by the write before it. Waits for a sync that is under way.
  void start(std::vector<std::filesystem::path> folders);

  // Whether all of it is on the disk, or waits for `patience`. Throws Error(data) with what failed, once.
  bool done(std::chrono::milliseconds patience);

 private:
  std::future<void> running_;
};

}  // namespace hexad::cluster
