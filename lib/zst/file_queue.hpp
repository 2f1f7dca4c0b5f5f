// Files of lines that a thread of its own makes and writes: whoever has lines never waits for a disk.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace hexad::zst {

// Lines that wait to be made. `line` is called in that thread, and again where the disk was full.
struct WaitingFile {
  std::string name;  // in the queue's folder
  int64_t count = 0;
  std::function<std::string(int64_t)> line;
  size_t bytes = 0;  // about what it keeps in memory while it waits
};

// In order, by write_lines (lines_file.hpp). What waits has `most_bytes` at most, or is one file: of more, the oldest
// are left out; where they only came faster than they could be written, one warning says so. Its members are called
// from one thread.
class FileQueue {
 public:
  explicit FileQueue(std::filesystem::path folder, size_t most_bytes = size_t{64} << 20);
  // Ends at once: the file that is being written is the last. A disk that hangs is left behind.
  ~FileQueue();
  FileQueue(const FileQueue&) = delete;
  FileQueue& operator=(const FileQueue&) = delete;

  // Throws what writing an earlier file has thrown, once, unless the disk was full; so does wait().
  void put(WaitingFile file);
  // What has found no room is tried again.
  void retry();
  // Until nothing waits but for room; false where this takes longer.
  bool wait(std::chrono::milliseconds patience);

  // Why files wait for room; "" where none does.
  std::string no_room() const;
  int64_t waiting() const;
  // That waited for room until they were the oldest of too many.
  int64_t left_out() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // the thread's too
};

}  // namespace hexad::zst
