// Which file was looked at: one that is written anew while its rows are read must not give rows of two files.
#pragma once
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace hexad::table::arrow_files {

class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Stamp {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  int64_t changed = 0;  // nanoseconds
  // Not by device and inode: a mount by FUSE may give a file others each time.
  bool operator==(const Stamp& other) const { return size == other.size && changed == other.changed; }
};

inline Stamp stamp_of(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) throw Refused(std::string("cannot be read: ") + std::strerror(errno));
  return {status.st_dev, status.st_ino, status.st_size,
          int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

[[noreturn]] inline void refuse_change() {
  throw Refused("it has been written anew since it was opened; data must not change while a run reads it");
}

inline void require_same(const std::string& file, const Stamp& stamp) {
  if (stamp_of(file) != stamp) refuse_change();
}

// Of a file that is mapped, which stays what it is where its name has gone, or is another file's by now.
inline void require_same_bytes(const std::string& file, const Stamp& stamp) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0 || status.st_dev != stamp.device || status.st_ino != stamp.inode) return;
  require_same(file, stamp);
}

}  // namespace hexad::table::arrow_files
