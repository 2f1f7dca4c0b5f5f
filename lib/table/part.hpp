// A file that is written beside its name and then renamed: under the name it is whole or not there. For both halves of
// lib/table: no error type.
#pragma once
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

namespace hexad::table {

class Part {
 public:
  explicit Part(const std::string& name) : name_(name), path_(name + "." + std::to_string(::getpid()) + ".part") {}
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() { std::remove(path_.c_str()); }  // does nothing once it is renamed

  const std::string& path() const { return path_; }  // what is written
  // 0, or an errno.
  int rename() const { return std::rename(path_.c_str(), name_.c_str()) == 0 ? 0 : errno; }

 private:
  std::string name_, path_;
};

}  // namespace hexad::table
