#include "lib/base/file/append_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lib/base/file/open_file.hpp"

namespace hexad {
namespace {

[[noreturn]] void cannot_write(const std::filesystem::path& path, int reason) {
  const std::string text = fmt::format("cannot write {}: {}", path.string(), why_not_opened(reason));
  if (reason == ENOSPC || reason == EDQUOT) throw DiskFull(text);
  throw Error(ErrorKind::data, text);
}

}  // namespace

AppendFile::AppendFile(std::filesystem::path path, mode_t mode)
    : path_(std::move(path)), fd_(open_to_write(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, mode)) {
  if (fd_ < 0) cannot_write(path_, errno);
}

AppendFile::~AppendFile() { ::close(fd_); }

void AppendFile::append(std::string_view bytes) {
  if (!cut()) cannot_write(path_, errno);
  struct stat before {};
  // Its length now, not what was written so far: somebody may have emptied the file to make room.
  if (::fstat(fd_, &before) != 0) cannot_write(path_, errno);
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
      continue;
    }
    const int reason = written == 0 ? ENOSPC : errno;
    if (reason == EINTR) continue;
    torn_at_ = before.st_size;
    cut();
    cannot_write(path_, reason);
  }
}

// A file system without room may refuse even this: the next append tries again.
bool AppendFile::cut() {
  struct stat now {};
  if (torn_at_ < 0) return true;
  if (::fstat(fd_, &now) != 0 || (now.st_size > torn_at_ && ::ftruncate(fd_, torn_at_) != 0)) return false;
  torn_at_ = -1;
  return true;
}

}  // namespace hexad
