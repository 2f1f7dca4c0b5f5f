// One process a directory, and file systems that cannot tell.
#include "core/checkpoint/directory_lock.hpp"

#include <doctest/doctest.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "lib/base/error.hpp"
#include "tests/checkpoint/temp_folder.hpp"
#include "tests/support/said.hpp"

namespace {
int refusal = 0;  // the error of every flock in this program; 0: it is the system's
}

// In front of the C library's: no file system of a test's own is without locks.
extern "C" int flock(int fd, int operation) noexcept {
  if (refusal == 0) return static_cast<int>(::syscall(SYS_flock, fd, operation));
  errno = refusal;
  return -1;
}

using hexad::checkpoint::DirectoryLock;

TEST_CASE("a directory is locked while the lock lives, without a word") {
  const TempFolder folder;
  const test_support::Log log;
  {
    const DirectoryLock first(folder.path(), "the.key");
    CHECK_THROWS_WITH_AS(DirectoryLock(folder.path(), "the.key"), doctest::Contains("is in use by another run (pid "),
                         hexad::Error);
  }
  const DirectoryLock second(folder.path(), "the.key");
  CHECK(log.text().empty());
}

TEST_CASE("where there are no locks, a warning says that nothing is held") {
  const TempFolder folder;
  for (const int reason : {ENOLCK, ENOSYS}) {
    const test_support::Log log;
    refusal = reason;
    const DirectoryLock first(folder.path(), "the.key"), second(folder.path(), "the.key");
    refusal = 0;
    SAYS(log.text(), fmt::format("the.key: cannot lock {}: {}. Nothing keeps a second run from writing there too",
                                 (folder / ".lock").string(), std::strerror(reason)));
  }
}
