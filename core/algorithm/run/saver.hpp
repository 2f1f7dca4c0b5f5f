// A checkpoint that reaches the disk while training goes on.
#pragma once
#include <chrono>
#include <future>
#include <optional>

#include "core/algorithm/run/training.hpp"
#include "core/data/dataset/loader.hpp"

namespace hexad::algorithm {

// begin() has the backends write their files, which are whole in the page cache when it returns: weights may change.
// The workers sync them then, their checksums are taken, and the store commits the checkpoint, on threads of their own.
// Until it is committed the newest checkpoint is the one before. One thread.
class Saver {
 public:
  explicit Saver(Training& run) : run_(run) {}
  // Waits for what is under way; a checkpoint that fails then is given up with a line of the log.
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // step_N of the step where the run stands; `position`: of the data, where a resumed run goes on. Waits for the
  // checkpoint before it.
  void begin(const data::LoaderState& position);
  // The step whose checkpoint is under way, and that of the newest one, whatever became of it.
  std::optional<int64_t> step() const { return step_; }
  int64_t newest() const { return info_.total_steps; }
  // From begin() to the commit, of the slowest so far.
  double longest_s() const { return longest_s_; }

  // Goes on with it for `patience` at most. The step, once it is committed. All of them throw what keeps it from the
  // disk, and remove what there is of it.
  std::optional<int64_t> advance(std::chrono::milliseconds patience);
  // Until it is committed. Throws Error(data) after an hour.
  std::optional<int64_t> finish();

 private:
  void abandon();

  Training& run_;
  bool is_first_ = true;  // the next checkpoint is, of this run
  std::optional<int64_t> step_;
  checkpoint::TrainingInfo info_;
  Stopwatch began_;
  double longest_s_ = 0;
  std::future<checkpoint::FileSums> sums_;  // of the files that the backends wrote
  std::future<void> commit_;                // valid when the workers have synced
};

}  // namespace hexad::algorithm
