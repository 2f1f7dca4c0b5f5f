// Folders that a run writes to: real ones, and such as a test cannot make.
#include "app/doctor/disk.hpp"

#include <doctest/doctest.h>

#include "tests/app/doctor/found.hpp"
#include "tests/support/report.hpp"
#include "tests/support/small_disk.hpp"
#include "tests/support/toy/toy.hpp"

using namespace doctor_test;

namespace {

Place roomy() { return {.path = "/place", .kind = "ext4", .free = uint64_t{100} << 30, .total = uint64_t{200} << 30}; }

}  // namespace

TEST_CASE("a folder is tried, and left as it was") {
  const toy::TempDir dir;
  const Place place = look_at(dir.path());
  CHECK(place.not_there == "");
  CHECK(place.not_written == "");
  CHECK(place.not_locked == "");
  CHECK(place.not_linked == "");
  CHECK(place.total >= place.free);
  CHECK(place.total > 0);
  CHECK(place.kind != "");
  CHECK(toy::fs::is_empty(dir.path()));
}

TEST_CASE("a folder that is not there or that takes no file says why") {
  CHECK(look_at("/nowhere/at/all").not_there == "No such file or directory");
  CHECK(look_at("/proc").not_written != "");
  check_says(current_folder(look_at("/nowhere")), Level::note,
             "the current folder /nowhere: No such file or directory | start hexad elsewhere");
  check_says(temporary_files(look_at("/nowhere")), Level::problem, "set TMPDIR to a folder that you can write");
  check_says(current_folder(look_at("/proc")), Level::note, "the current folder /proc cannot be written: ");
  check_says(temporary_files(look_at("/proc")), Level::problem,
             "the folder of temporary files /proc cannot be written: ");
}

TEST_CASE("a disk that is full is a problem") {
  const toy::TempDir dir;
  const SmallDisk disk(dir / "disk", 1 << 20);
  if (!disk) return test_report::skipped("a disk of a test's own takes the right to mount");
  disk.fill();
  const Place place = look_at(dir / "disk");
  CHECK(place.kind == "tmpfs");
  check_says(current_folder(place), Level::problem, "(tmpfs): 0 MiB free of 1 MiB, wanted 1 GiB");
  check_says(temporary_files(place), Level::problem, "0 MiB free of 1 MiB, wanted 64 MiB");
}

TEST_CASE("what a file system lacks is told with what wants it") {
  Place place = roomy();
  check_all_ok(current_folder(place), "current folder /place (ext4): 100.0 GiB free of 200.0 GiB");
  check_all_ok(temporary_files(place), "temporary files /place (ext4): 100.0 GiB free");
  place.not_locked = "No locks available", place.not_linked = "Operation not permitted";
  check_says(current_folder(place), Level::note,
             "/place keeps no locks: No locks available | give every run a checkpoint_dir of its own");
  check_says(current_folder(place), Level::note, "/place keeps no symbolic links: Operation not permitted");
  place = roomy(), place.free = uint64_t{5} << 30;
  check_says(current_folder(place), Level::note, "checkpointing.save_optimizer=false");
  place = roomy(), place.files_left = 0;
  check_says(current_folder(place), Level::problem, "has no inode left");
}

TEST_CASE("shared memory is for the ranks that NCCL has there") {
  Place place = {.path = "/dev/shm", .kind = "tmpfs", .free = uint64_t{64} << 20, .total = uint64_t{64} << 20};
  check_all_ok(shared_memory(place, 0), "/dev/shm (tmpfs): 64 MiB free of 64 MiB");
  check_all_ok(shared_memory(place, 1), "64 MiB");
  check_says(shared_memory(place, 8), Level::problem, "wanted 256 MiB: NCCL has buffers of 8 ranks there");
  check_says(shared_memory(place, 8), Level::problem, "docker run --shm-size=1g");
  place.free = place.total = uint64_t{1} << 30;
  check_all_ok(shared_memory(place, 8), "1.0 GiB free");
  place.not_there = "No such file or directory";
  check_says(shared_memory(place, 0), Level::note, "/dev/shm cannot be used: No such file or directory");
  check_says(shared_memory(place, 2), Level::problem, "/dev/shm cannot be used");
}
