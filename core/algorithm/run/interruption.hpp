// Between the signals that end a run, or ask it for a checkpoint, and the run.
#pragma once
#include <atomic>
#include <filesystem>
#include <functional>
#include <mutex>
#include <vector>

namespace hexad::algorithm {

// The atomics are for signal handlers too; all else is any thread's.
class Interruption {
 public:
  std::atomic<int> interrupted = 0;       // > 0: end
  std::atomic<int> saves = 0;             // how often a checkpoint was asked for
  std::atomic<bool> has_trained = false;  // a step is finished; until then there is nothing to save or to keep
  std::atomic<bool> has_unsaved = false;  // the newest of them is in no checkpoint yet, and is to be in one

  // A run begins, also one that goes on after a lost worker.
  void begin();
  // Its first step is finished: what it has made stays.
  void trained();

  // What the run will make: a file or a folder, and those folders above it that are not there yet. Folders are taken
  // back if they are empty.
  void will_make(const std::filesystem::path& path);
  // A folder that is the run's alone, which is taken back with all that is in it.
  void has_made(const std::filesystem::path& folder);
  // A folder into which it has moved what lay beside it: that goes back.
  void has_filled(const std::filesystem::path& folder);
  // Takes all of it back and calls `then`, unless a step is finished: none finishes meanwhile.
  void take_back(const std::function<void()>& then = nullptr);

 private:
  enum class Kind { empty, whole, filled };
  struct Made {
    std::filesystem::path path;
    Kind kind;
  };
  std::mutex mutex_;
  std::vector<Made> made_;
};

}  // namespace hexad::algorithm
