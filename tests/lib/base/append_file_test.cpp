// Records that fit whole or not at all.
#include "lib/base/file/append_file.hpp"

#include <sys/resource.h>

#include <csignal>

#include "tests/support/report.hpp"
#include "tests/support/said.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/support/toy/toy.hpp"

using namespace hexad;
using plugin_test::error_of;
using plugin_test::read_text;

TEST_CASE("a record that was half written is taken back, and the next one follows the last whole one") {
  const toy::TempDir dir;
  AppendFile file(dir / "file");
  file.append("first record\n");
  // The one failure in the middle of a write that needs no privilege.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{20, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string error = error_of([&] { file.append("a record that is too long\n"); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(error == fmt::format("cannot write {}: {}", (dir / "file").string(), std::strerror(EFBIG)));
  CHECK(read_text(dir / "file") == "first record\n");
  file.append("second record\n");
  CHECK(read_text(dir / "file") == "first record\nsecond record\n");
}

TEST_CASE("a full disk is told apart from other errors") {
  CHECK_THROWS_AS(AppendFile("/dev/full").append("x"), DiskFull);
  CHECK(error_of([] { AppendFile("/dev/full").append("x"); }) == "cannot write /dev/full: No space left on device");
  const toy::TempDir dir;
  try {
    AppendFile(dir / "no/folder");
    FAIL("made");
  } catch (const DiskFull&) {
    FAIL("is not full");
  } catch (const Error& error) {
    SAYS(error.what(), "no/folder: No such file or directory");
  }
}

TEST_CASE("on a disk that fills up the last record is whole, and goes on where there is room again") {
  const toy::TempDir dir;
  const SmallDisk disk(dir / "disk", 64 << 10);
  if (!disk) {
    test_report::skipped("a mount of its own is not allowed");
    return;
  }
  AppendFile file(dir / "disk/file");
  const std::string record = std::string(999, 'r') + "\n";
  size_t written = 0;
  for (bool full = false; !full && written < 100;) {
    try {
      file.append(record);
      ++written;
    } catch (const DiskFull&) {
      full = true;
    }
  }
  CHECK(written > 10);
  CHECK(written < 100);
  CHECK(read_text(dir / "disk/file").size() == written * record.size());
  std::ofstream(dir / "disk/file", std::ios::trunc);  // somebody makes room
  file.append(record);
  CHECK(read_text(dir / "disk/file") == record);
}
