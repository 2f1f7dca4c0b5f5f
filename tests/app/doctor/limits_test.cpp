// Limits, ports and the sandbox of machines that have too little of them.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/doctor/topics.hpp"
#include "tests/app/doctor/found.hpp"
#include "tests/support/toy/toy.hpp"

using namespace doctor_test;
using toy::TempDir;

TEST_CASE("open files are counted against eight ranks") {
  check_all_ok(limits("/nowhere", {.files = 112}, {}), "open files 112");
  check_all_ok(limits("/nowhere", {}, {}), "open files unlimited");
  check_says(limits("/nowhere", {.files = 111}, {}), Level::note,
             "open files 111, wanted 112 in each process of 8 ranks | raise the hard limit: ulimit -Hn");
  check_says(limits("/nowhere", {.files = 56}, {}), Level::note, "open files 56");
  check_says(limits("/nowhere", {.files = 55}, {}), Level::problem,
             "open files 55, wanted 56 in each process of a run");
}

TEST_CASE("processes are those of the user and of the control group, whichever are fewer") {
  check_says(limits("/nowhere", {.processes = 500}, {}), Level::note,
             "processes and threads 500, wanted 1024 for 8 ranks | raise it: ulimit -u");
  check_all_ok(limits("/nowhere", {.processes = 500, .root = true}, {}), "processes and threads unlimited");
  check_says(limits("/nowhere", {.processes = 500}, {.tasks = 64}), Level::problem,
             "processes and threads 64 (pids.max), wanted 1024 for 8 ranks | raise it: docker run --pids-limit");
  check_all_ok(limits("/nowhere", {.processes = 5000}, {.tasks = 10000}), "processes and threads 5000");
}

TEST_CASE("locked memory matters where there is InfiniBand") {
  const TempDir root;
  check_all_ok(limits(root.path(), {.locked = 8 << 20}, {}), "locked memory 8 MiB");
  toy::fs::create_directories(root / "sys/class/infiniband");
  check_all_ok(limits(root.path(), {.locked = 8 << 20}, {}), "locked memory 8 MiB");
  toy::fs::create_directories(root / "sys/class/infiniband/mlx5_0");
  check_says(limits(root.path(), {.locked = 8 << 20}, {}), Level::note,
             "locked memory 8 MiB, and there is InfiniBand, for which NCCL locks its buffers | ulimit -l unlimited");
  check_all_ok(limits(root.path(), {}, {}), "locked memory unlimited");
}

TEST_CASE("ports that are taken are counted, and none that is free is a problem") {
  const int taken = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  REQUIRE(::bind(taken, reinterpret_cast<sockaddr*>(&place), sizeof place) == 0);
  socklen_t size = sizeof place;
  REQUIRE(::getsockname(taken, reinterpret_cast<sockaddr*>(&place), &size) == 0);
  const int port = ntohs(place.sin_port);
  check_says(ports(port, port + 1), Level::problem,
             fmt::format("0 of 1 ports in [{}, {}) are free, and the ranks of a run meet at one of them | set "
                         "cluster.master_port_range_low",
                         port, port + 1));
  ::close(taken);
  check_all_ok(ports(1400, 1999), "loopback serves; ");
}

TEST_CASE("what a kernel lacks for sandboxes is a note of the sandbox that wants it") {
  check_all_ok(sandbox({.landlock = 6, .seccomp = true}), "Landlock 6, filters of system calls");
  check_says(
      sandbox({.landlock = 4, .seccomp = true}), Level::note,
      "env.<name>.sandbox=strict on this kernel: Landlock 4, filters of system calls; its Landlock is of version "
      "4 (want 6");
  CHECK(sandbox({.landlock = 4, .seccomp = true}).size() == 1);
  const Findings none = sandbox({.landlock = 0, .seccomp = false});
  CHECK(none.size() == 2);
  check_says(none, Level::note, "of this kernel: no Landlock, no filters of system calls; it has no Landlock");
  check_says(none, Level::note, "a program has the network");
}
