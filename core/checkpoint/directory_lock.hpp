// One process a directory: whoever holds the lock writes there.
#pragma once
#include <filesystem>
#include <string>

namespace hexad::checkpoint {

// Held as long as the object lives, and let go by the system when the process ends, in whatever way. On a file system
// without locks nothing is held, and a warning says so.
class DirectoryLock {
 public:
  // Takes directory/.lock. Throws Error(data) naming host and process if another one has it, or if it cannot be
  // written; `key` is the configuration key to name.
  DirectoryLock(const std::filesystem::path& directory, const std::string& key);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  // Throws what taking the lock of a directory that is there would throw, as far as that can be asked without making or
  // locking anything: a run that starts meanwhile gets its lock.
  static void require_free(const std::filesystem::path& directory, const std::string& key);

 private:
  int fd_ = -1;
};

}  // namespace hexad::checkpoint
