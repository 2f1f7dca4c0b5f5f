// SHA-256 of safetensors files while they are written, so that a save takes no longer for its checksums.
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace hexad::tensorfile {

struct GrownFile {
  uint64_t bytes = 0;
  std::string sha256;  // 64 lower-case hex digits
};

// Follows what a SafetensorsWriter appends to ".NAME.growing", whichever process it is of on this host. Files that are
// written in another way are nothing to it: not every file may be taken for final from its front on.
class GrowingSums {
 public:
  // Of files in `folders`, which need not be there yet, on a thread that gives way to all others.
  explicit GrowingSums(std::vector<std::filesystem::path> folders);
  ~GrowingSums();
  GrowingSums(const GrowingSums&) = delete;
  GrowingSums& operator=(const GrowingSums&) = delete;

  // Once all writers have finished: files by path (folder / NAME), as far as they were followed from their first byte
  // to their last. Takes the time for what is still to be read. One call.
  std::map<std::filesystem::path, GrownFile> finish();

 private:
  void run();

  const std::vector<std::filesystem::path> folders_;
  std::atomic<bool> are_whole_ = false, ends_ = false;
  std::map<std::filesystem::path, GrownFile> sums_;  // the thread's until it has ended
  std::thread thread_;
};

}  // namespace hexad::tensorfile
