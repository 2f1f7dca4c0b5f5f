// The folders that a run writes into, as its servers see them; and a disk without room.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace faults {

// Where weights for the servers ("save") are begun, or checkpoints ("checkpoint"): HEXAD_FAULTS_REFIT_DIR and
// HEXAD_FAULTS_CHECKPOINT_DIR of the environment.
std::filesystem::path folder_of(const std::string& point);

// Watches what is begun there.
class Begun {
 public:
  explicit Begun(const std::string& point);
  ~Begun();
  Begun(const Begun&) = delete;
  Begun& operator=(const Begun&) = delete;

  // Waits for a folder to be begun; false when the time is over.
  bool wait(int timeout_ms) const;
  // Whether one is there that is not finished.
  bool unfinished() const;
  bool is_checkpoint() const { return point_ == "checkpoint"; }

 private:
  bool is_begun(const std::string& name) const;

  std::string point_;
  std::vector<std::filesystem::path> folders_;
  int inotify_ = -1;
};

// Takes all room of the disk that `folder` lies on until it ends, or the process does.
class FullDisk {
 public:
  explicit FullDisk(const std::filesystem::path& folder);
  ~FullDisk();
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

  void fill();  // what others have given back, too

 private:
  int descriptor_ = -1;
};

// Until the run has met the full disk: what it writes for servers stands still for half a second, or a third checkpoint
// is begun. Calls `meanwhile` often.
void wait_until_met(const Begun& begun, const std::function<void()>& meanwhile);

}  // namespace faults
