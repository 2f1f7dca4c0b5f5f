#include "core/checkpoint/directory_lock.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <spdlog/spdlog.h>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/file/file_lock.hpp"
#include "lib/base/file/folder.hpp"
#include "lib/base/file/open_file.hpp"

namespace hexad::checkpoint {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_written(const std::string& key, const fs::path& file, const std::string& why) {
  fail(ErrorKind::data, "{}: cannot write {}: {}", key, file.string(), why);
}

[[noreturn]] void refuse_used(const std::string& key, const fs::path& file) {
  fail(ErrorKind::data,
       "{}: {} is in use by another run ({}). Wait for its end, or give this run a directory of its own", key,
       file.parent_path().string(), read_file(file));
}

}  // namespace

DirectoryLock::DirectoryLock(const fs::path& directory, const std::string& key) {
  const fs::path file = directory / ".lock";
  fd_ = open_to_write(file.c_str(), O_RDWR | O_CREAT, 0644);
  if (fd_ < 0) refuse_written(key, file, why_not_opened(errno));
  if (!take_lock(fd_)) {
    const int error = errno;
    ::close(fd_);
    fd_ = -1;
    if (error == EAGAIN || error == EACCES) refuse_used(key, file);
    spdlog::warn("{}: cannot lock {}: {}. Nothing keeps a second run from writing there too", key, file.string(),
                 std::strerror(error));  // some network file systems have no locks
    return;
  }
  char host[256] = "?";
  ::gethostname(host, sizeof host - 1);
  const std::string holder = fmt::format("pid {} on {}", ::getpid(), host);
  // Who holds it is for messages alone: a full disk does not matter.
  if (::ftruncate(fd_, 0) == 0 && ::pwrite(fd_, holder.data(), holder.size(), 0) < 0) return;
}

DirectoryLock::~DirectoryLock() {
  if (fd_ >= 0) ::close(fd_);
}

void DirectoryLock::require_free(const fs::path& directory, const std::string& key) {
  const fs::path file = directory / ".lock";
  const int lock = open_to_write(file.c_str(), O_RDWR, 0);
  if (lock < 0 && errno != ENOENT) refuse_written(key, file, why_not_opened(errno));
  if (lock < 0) {
    if (const std::error_code error = why_nothing_added(directory)) refuse_written(key, file, error.message());
    return;
  }
  const bool is_used = is_locked(lock);
  ::close(lock);
  if (is_used) refuse_used(key, file);
}

}  // namespace hexad::checkpoint
