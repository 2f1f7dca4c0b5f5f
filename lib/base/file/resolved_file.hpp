// A file that is looked at before it is believed: by its open descriptor, so that all of the looking is at one file,
// whatever its name leads to meanwhile.
#pragma once
#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "lib/base/file/input_file.hpp"

namespace hexad {

// Open as long as it lives. Moves, and is empty after that.
class ResolvedFile {
 public:
  // Opens what `name` leads to. Throws by `refuse` where that cannot be: also no regular file can be opened. `trusted`:
  // the name is believed, and nothing is insecure.
  explicit ResolvedFile(const std::filesystem::path& name, RefuseFile refuse = refuse_file, bool trusted = false);
  ResolvedFile(ResolvedFile&& from) noexcept;
  ResolvedFile& operator=(ResolvedFile&&) = delete;
  ~ResolvedFile();

  // Its path without links, of the folders that were gone through.
  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return static_cast<uint64_t>(status_.st_size); }
  // What others could have changed of it or on the way to it (permissions.hpp), or nothing.
  const std::optional<std::string>& insecure() const { return insecure_; }

  // Fills `bytes` from `offset` on; false where the file ends before. Throws by `refuse` what cannot be read.
  bool read(std::span<std::byte> bytes, uint64_t offset = 0) const;
  // All of its bytes. Throws by `refuse` what cannot be read, EIO where it has become shorter; so does sha256.
  std::string text() const;
  // Its SHA-256 in 64 lower-case hex digits.
  std::string sha256() const;
  // Whether it is this file that the process has mapped at `address`. A map is compared with another map: some file
  // systems show another device or inode there than to stat.
  bool is_mapped_at(const void* address) const;

 private:
  std::filesystem::path path_;
  RefuseFile refuse_;
  int descriptor_ = -1;
  struct stat status_ {};
  std::optional<std::string> insecure_;
};

}  // namespace hexad
