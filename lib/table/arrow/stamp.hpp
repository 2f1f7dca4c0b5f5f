// Which file was looked at: one that is written anew while its rows are read must not give rows of two files.
#pragma once
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "lib/table/arrow/table.hpp"

namespace hexad::table::arrow_files {

struct Stamp {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  int64_t changed = 0;  // nanoseconds
  bool operator==(const Stamp&) const = default;
};

inline Stamp stamp_of(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) throw Refused(std::string("cannot be read: ") + std::strerror(errno));
  return {status.st_dev, status.st_ino, status.st_size,
          int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

inline void require_same(const std::string& file, const Stamp& stamp) {
  if (stamp_of(file) == stamp) return;
  throw Refused("it has been written anew since it was opened; data must not change while a run reads it");
}

}  // namespace hexad::table::arrow_files
