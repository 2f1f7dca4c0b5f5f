// The folder of one instance: weights for its servers, and the servers' logs unless they have another folder.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace hexad::bridge {

// `path` may be called from any thread, the rest from one thread at a time.
class WorkDir {
 public:
  // A new folder below `parent` ("": the machine's folder for temporary files), whose name says `program`. Throws
  // sdk::Error, which names `key`, if there can be none.
  WorkDir(const std::string& parent, const std::string& program, const std::string& key);
  ~WorkDir();  // removes it, with all that it holds
  WorkDir(const WorkDir&) = delete;
  WorkDir& operator=(const WorkDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Where weights of this version are to be written.
  std::filesystem::path weights(int64_t version) const;
  // The weights in `newest` are in force. Of those that were in force before, the last ones stay too, as a server may
  // be loading them still, and what `in_use` says is being read; the others are removed.
  void keep(const std::filesystem::path& newest, const std::function<bool(const std::filesystem::path&)>& in_use);

 private:
  std::filesystem::path path_;
  std::vector<std::filesystem::path> kept_;  // weights that have been in force, the latest last
};

}  // namespace hexad::bridge
