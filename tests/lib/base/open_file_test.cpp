// Nothing is written through a link.
#include "lib/base/file/open_file.hpp"

#include <doctest/doctest.h>

#include "lib/base/file/append_file.hpp"
#include "lib/base/file.hpp"
#include "tests/support/said.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using plugin_test::error_of;
using plugin_test::read_text;

namespace {

constexpr const char* kLink =
    "it is a symbolic link, and nothing is written through one. Remove the link, or name its target";

// What open_to_write makes of it: its errno, or 0.
int opened(const std::filesystem::path& path, int flags) {
  const int descriptor = open_to_write(path.c_str(), flags, 0644);
  const int reason = descriptor < 0 ? errno : 0;
  if (descriptor >= 0) ::close(descriptor);
  return reason;
}

}  // namespace

TEST_CASE("a link to a file, a link to nothing and a hard link are refused, and what they name is as it was") {
  const toy::TempDir dir;
  const auto precious = dir.write("precious", "precious");
  std::filesystem::create_symlink(precious, dir / "link");
  std::filesystem::create_symlink("nowhere", dir / "dangling");
  std::filesystem::create_hard_link(precious, dir / "hard");
  for (const int how : {O_WRONLY | O_CREAT | O_TRUNC, O_WRONLY | O_CREAT | O_APPEND, O_RDWR | O_CREAT}) {
    CHECK(opened(dir / "link", how) == ELOOP);
    CHECK(opened(dir / "dangling", how) == ELOOP);
    CHECK(opened(dir / "hard", how) == EMLINK);
  }
  CHECK(error_of([&] { write_file(dir / "link", "x"); }) ==
        fmt::format("{}: cannot be written: {}", (dir / "link").string(), kLink));
  CHECK(error_of([&] { AppendFile(dir / "link").append("x"); }) ==
        fmt::format("cannot write {}: {}", (dir / "link").string(), kLink));
  SAYS(error_of([&] { write_file(dir / "hard", "x"); }),
       "hard: cannot be written: it is a hard link, and nothing is written through one. Remove that name");
  CHECK(read_text(precious) == "precious");
  CHECK_FALSE(std::filesystem::exists(dir / "nowhere"));
}

TEST_CASE("a folder on the way may be a link, and a link to a device or to a pipe with a reader is followed") {
  const toy::TempDir dir;
  dir.write("folder/file", "old");
  std::filesystem::create_directory_symlink("folder", dir / "link");
  write_file(dir / "link/file", "new");
  CHECK(read_text(dir / "folder/file") == "new");
  std::filesystem::create_symlink("/dev/null", dir / "device");
  CHECK(opened(dir / "device", O_WRONLY | O_CREAT | O_TRUNC) == 0);

  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  write_file(fmt::format("/dev/fd/{}", ends[1]), "through the pipe");
  char bytes[32] = {};
  CHECK(::read(ends[0], bytes, sizeof bytes) == 16);
  CHECK(std::string(bytes) == "through the pipe");
  ::close(ends[0]), ::close(ends[1]);
}

TEST_CASE("a pipe that nobody reads makes nobody wait") {
  const toy::TempDir dir;
  REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
  SAYS(error_of([&] { write_file(dir / "pipe", "x"); }), "pipe: cannot be written: it is a pipe that nobody reads");
}

TEST_CASE("an ordinary file is made, emptied or kept as the flags say, and what is written waits") {
  const toy::TempDir dir;
  const auto file = dir / "file";
  CHECK(opened(file, O_WRONLY) == ENOENT);
  CHECK(opened(file, O_WRONLY | O_CREAT | O_EXCL) == 0);
  CHECK(opened(file, O_WRONLY | O_CREAT | O_EXCL) == EEXIST);
  dir.write("file", "text");
  CHECK(opened(file, O_WRONLY | O_CREAT | O_APPEND) == 0);
  CHECK(read_text(file) == "text");
  const int descriptor = open_to_write(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
  REQUIRE(descriptor >= 0);
  CHECK(read_text(file).empty());
  const int flags = ::fcntl(descriptor, F_GETFL);
  CHECK((flags & O_APPEND) != 0);
  CHECK((flags & O_NONBLOCK) == 0);
  CHECK((::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0);
  ::close(descriptor);
}
