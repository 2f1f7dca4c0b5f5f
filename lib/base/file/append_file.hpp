// A file that grows by whole records: one that does not fit leaves nothing of itself behind.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "lib/base/error.hpp"

namespace hexad {

// No room, or a used-up quota: for others to mend, and to be tried again.
class DiskFull : public Error {
 public:
  explicit DiskFull(const std::string& text) : Error(ErrorKind::data, text) {}
};

// Makes the file, or empties it; never through a link (open_file.hpp). One thread. Throws DiskFull, or another
// Error(data) that names the file and the reason.
class AppendFile {
 public:
  explicit AppendFile(std::filesystem::path path, mode_t mode = 0666);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Appends all bytes; the operating system has them when it returns. After an error the file is as it was before.
  void append(std::string_view bytes);

 private:
  bool cut();

  std::filesystem::path path_;
  int fd_ = -1;
  off_t torn_at_ = -1;  // the length that the file has to be cut to; -1: it ends with a whole record
};

}  // namespace hexad
