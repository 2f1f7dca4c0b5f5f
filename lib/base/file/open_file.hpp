// How a file is opened to be written: never through a link. Who may write in a folder could otherwise have a run empty
// any file of its user, by a link under the name that the run writes. For libraries and plugins alike: no error type.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace hexad {

// Opens `path` as open(2) does with `flags` (O_WRONLY or O_RDWR, O_CREAT, O_TRUNC, O_APPEND ...), closed on exec. -1,
// and errno, where that fails: ELOOP for a link that leads to a file or to nothing, EMLINK for a file that has another
// name too (a hard link), ENXIO for a pipe that nobody reads. A link to a device or to a pipe is followed
// (/dev/stdout). Nothing is emptied before it is known what it is. Names of folders on the way may be links.
inline int open_to_write(const char* path, int flags, mode_t mode) {
  const int common = (flags & ~O_TRUNC) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  int descriptor = ::open(path, common | O_NOFOLLOW, mode);
  const bool through_link = descriptor < 0 && errno == ELOOP;
  if (through_link) descriptor = ::open(path, common & ~(O_CREAT | O_EXCL));
  if (descriptor < 0) {
    if (through_link) errno = ELOOP;
    return -1;
  }
  struct stat status {};
  int reason = ::fstat(descriptor, &status) != 0 ? errno : 0;
  const bool regular = S_ISREG(status.st_mode);
  if (reason == 0 && regular) reason = through_link ? ELOOP : status.st_nlink > 1 ? EMLINK : 0;
  if (reason == 0 && regular && (flags & O_TRUNC) && ::ftruncate(descriptor, 0) != 0) reason = errno;
  if (reason == 0 && !(flags & O_NONBLOCK) && ::fcntl(descriptor, F_SETFL, flags & O_APPEND) != 0) reason = errno;
  if (reason == 0) return descriptor;
  ::close(descriptor);
  errno = reason;
  return -1;
}

// What errno says after it, in words.
inline std::string why_not_opened(int reason) {
  switch (reason) {
    case ELOOP: return "it is a symbolic link, and nothing is written through one. Remove the link, or name its target";
    case EMLINK: return "it is a hard link, and nothing is written through one. Remove that name";
    case ENXIO: return "it is a pipe that nobody reads";
    default: return std::strerror(reason);
  }
}

}  // namespace hexad
