// What the files of a test program of backends share: scenarios for its child processes, and folders.
#pragma once
#include "tests/runtime/rank_process.hpp"

namespace backend_test {

// Of all files.
inline rank_process::Scenarios& scenarios() {
  static rank_process::Scenarios all;
  return all;
}

inline bool add_scenarios(const rank_process::Scenarios& more) {
  scenarios().insert(more.begin(), more.end());
  return true;
}

// A folder that goes with its scope.
class TemporaryDir {
 public:
  TemporaryDir() : path_(rank_process::temporary_dir()) {}
  ~TemporaryDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDir(const TemporaryDir&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace backend_test
