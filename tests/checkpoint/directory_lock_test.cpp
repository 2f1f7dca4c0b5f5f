// One process a directory, and file systems that cannot tell.
#include "core/checkpoint/directory_lock.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <thread>

#include "lib/base/error.hpp"
#include "tests/checkpoint/temp_folder.hpp"
#include "tests/support/said.hpp"

namespace {
int refusal = 0;  // the error of every lock that this program takes; 0: it is the system's

int refused_or_done(int fd, int command, void* argument) {
  if (refusal == 0 || command != F_OFD_SETLK) return static_cast<int>(::syscall(SYS_fcntl, fd, command, argument));
  errno = refusal;
  return -1;
}
}  // namespace

// In front of the C library's: no file system of a test's own is without locks.
extern "C" int fcntl(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  void* argument = va_arg(more, void*);
  va_end(more);
  return refused_or_done(fd, command, argument);
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

namespace {
// What taking the lock says, and what asking says; "": nothing.
template <typename Call>
std::string said(const Call& call) {
  try {
    call();
  } catch (const hexad::Error& error) {
    return error.what();
  }
  return "";
}
void same(const std::filesystem::path& folder, const std::string& words) {
  const std::string asked = said([&] { DirectoryLock::require_free(folder, "the.key"); });
  CHECK_MESSAGE(asked.starts_with(words), asked);
  CHECK(asked == said([&] { const DirectoryLock lock(folder, "the.key"); }));
}
}  // namespace

TEST_CASE("asking whether a directory is free says what taking its lock would say, and makes nothing") {
  const TempFolder folder;
  DirectoryLock::require_free(folder.path(), "the.key");
  CHECK(names_in(folder.path()).empty());
  {
    const DirectoryLock lock(folder.path(), "the.key");
    const std::string holder = read_file(folder / ".lock");
    same(folder.path(), "the.key: " + folder.path().string() + " is in use by another run (" + holder + ")");
    CHECK(read_file(folder / ".lock") == holder);
  }
  same(folder.path(), "");
  std::filesystem::remove(folder / ".lock");
  folder.write("target", "");
  std::filesystem::create_symlink(folder / "target", folder / ".lock");
  same(folder.path(), "the.key: cannot write " + (folder / ".lock").string() + ": it is a symbolic link");
  std::filesystem::remove(folder / ".lock");
  std::filesystem::create_directory(folder / ".lock");
  same(folder.path(), "the.key: cannot write " + (folder / ".lock").string() + ": Is a directory");
}

TEST_CASE("whoever takes the lock is not disturbed by those who ask for it") {
  const TempFolder folder;
  folder.write(".lock", "");
  std::vector<std::jthread> asking;
  for (int i = 0; i < 2; ++i)
    asking.emplace_back([&](const std::stop_token& over) {
      while (!over.stop_requested()) said([&] { DirectoryLock::require_free(folder.path(), "the.key"); });
    });
  std::string refused;
  for (int i = 0; i < 5000 && refused.empty(); ++i)
    refused = said([&] { const DirectoryLock lock(folder.path(), "the.key"); });
  CHECK(refused == "");
}
