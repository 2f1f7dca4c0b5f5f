#include "core/checkpoint/directory_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <spdlog/spdlog.h>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/file/open_file.hpp"

namespace hexad::checkpoint {

DirectoryLock::DirectoryLock(const std::filesystem::path& directory, const std::string& key) {
  const std::filesystem::path file = directory / ".lock";
  fd_ = open_to_write(file.c_str(), O_RDWR | O_CREAT, 0644);
  if (fd_ < 0) fail(ErrorKind::data, "{}: cannot write {}: {}", key, file.string(), why_not_opened(errno));
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(fd_);
    fd_ = -1;
    if (error != EWOULDBLOCK) {  // some network file systems have no locks
      spdlog::warn("{}: cannot lock {}: {}. Nothing keeps a second run from writing there too", key, file.string(),
                   std::strerror(error));
      return;
    }
    fail(ErrorKind::data,
         "{}: {} is in use by another run ({}). Wait for its end, or give this run a directory of its own", key,
         directory.string(), read_file(file));
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

}  // namespace hexad::checkpoint
