// A file that is written beside its name, reaches the disk and is then renamed: under the name it is whole or not
// there. Who is first stays, as others may read it: what is kept under one name is the same. For both halves of
// lib/table: no error type.
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>
#include <string>

namespace hexad::table {

class Part {
 public:
  // Processes of several containers or hosts may share the folder, and have equal ids.
  explicit Part(const std::string& name)
      : name_(name),
        path_(name + "." + std::to_string(::getpid()) + "-" + std::to_string(std::random_device()()) + ".part") {}
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() { std::remove(path_.c_str()); }  // does nothing once it is renamed

  const std::string& path() const { return path_; }  // what is written
  // 0, or an errno.
  int rename() const {
    const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return errno;
    const int unwritten = ::fsync(descriptor) == 0 ? 0 : errno;
    ::close(descriptor);
    if (unwritten != 0) return unwritten;
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, name_.c_str(), RENAME_NOREPLACE) == 0 || errno == EEXIST)
      return 0;
    if (errno != EINVAL) return errno;  // a file system that cannot tell
    return std::rename(path_.c_str(), name_.c_str()) == 0 ? 0 : errno;
  }

 private:
  std::string name_, path_;
};

}  // namespace hexad::table
