// Processor, memory and control groups of machines that stand in a folder.
#include <doctest/doctest.h>

#include "app/doctor/topics.hpp"
#include "tests/app/doctor/found.hpp"
#include "tests/support/toy/toy.hpp"

using namespace doctor_test;
using toy::TempDir;

namespace {

constexpr const char* kPlain = "processor\t: 0\nmodel name\t: Old CPU\nflags\t\t: fpu sse2 avx fma\n";
constexpr const char* kWide =
    "processor\t: 0\nmodel name\t: New CPU\n"
    "flags\t\t: fma bmi2 avx2 avx512f avx512bw avx512cd avx512dq avx512vl avx512_bf16 amx_tile amx_bf16 sha_ni\n";

// Of a machine with 32 GiB, so many of them available.
void write_memory(const TempDir& root, int gib) {
  root.write("proc/meminfo", fmt::format("MemTotal:       33554432 kB\nMemFree:   100 kB\nMemAvailable:   {} kB\n",
                                         int64_t{gib} << 20));
}

}  // namespace

TEST_CASE("the processor's line has its name, its cores and what kernels are chosen for") {
  const TempDir root;
  root.write("proc/cpuinfo", kWide);
  check_all_ok(processor(root.path(), 8, {}), "New CPU, 8 cores, AVX2, AVX-512, AVX-512 BF16, AMX, SHA");
  check_all_ok(processor(root.path(), 1, {}), "New CPU, 1 core, AVX2");
  root.write("proc/cpuinfo", kPlain);
  check_says(processor(root.path(), 2, {}), Level::note, "Old CPU, 2 cores, no vectors: no AVX2");
  root.write("proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd sve sha2\n");
  check_all_ok(processor(root.path(), 64, {}), "processor, 64 cores, NEON, SVE, SHA");
  check_all_ok(processor(root / "nothing", 2, {}), "processor, 2 cores, no vectors");
}

TEST_CASE("less processor time than cores is a note") {
  const TempDir root;
  root.write("proc/cpuinfo", kWide);
  check_says(processor(root.path(), 8, {.cores = 1.5}), Level::note, "the time of 1.5 of them");
  CHECK(worst(processor(root.path(), 8, {.cores = 8})) == Level::ok);
}

TEST_CASE("little memory is a note, less a problem") {
  const TempDir root;
  write_memory(root, 16);
  check_all_ok(memory(root.path(), {}), "16.0 GiB free of 32.0 GiB");
  write_memory(root, 1);
  check_says(memory(root.path(), {}), Level::note, "room for the smallest models alone");
  write_memory(root, 0);
  check_says(memory(root.path(), {}), Level::problem, "0 MiB free of 32.0 GiB, wanted 0.5 GiB");
  check_says(memory(root / "nothing", {}), Level::note, "does not say how much there is");
}

TEST_CASE("a control group's memory counts where it is less than the machine's") {
  const TempDir root;
  write_memory(root, 16);
  const Share tight = {.memory_limit = uint64_t{4} << 30, .memory_left = uint64_t{256} << 20};
  check_says(memory(root.path(), tight), Level::problem, "the control group leaves 256 MiB of 4.0 GiB, wanted 0.5 GiB");
  check_says(memory(root.path(), tight), Level::problem, "docker run --memory");
  const Share wide = {.memory_limit = uint64_t{64} << 30, .memory_left = 0};
  check_all_ok(memory(root.path(), wide), "16.0 GiB free of 32.0 GiB");
}

TEST_CASE("a share is the least of a group's limits and of those above it") {
  const TempDir root;
  root.write("proc/self/cgroup", "0::/job/step\n");
  const std::string groups = "sys/fs/cgroup/";
  root.write(groups + "job/cpu.max", "400000 100000\n");
  root.write(groups + "job/step/cpu.max", "max 100000\n");
  root.write(groups + "job/memory.max", "1000000\n");
  root.write(groups + "job/memory.current", "700000\n");
  root.write(groups + "job/memory.stat", "anon 5\ninactive_file 200000\nactive_file 7\n");
  root.write(groups + "job/step/memory.max", "max\n");
  root.write(groups + "job/pids.max", "max\n");
  root.write(groups + "job/step/pids.max", "512\n");
  const Share share = read_share(root.path());
  CHECK(share.cores == 4.0);
  CHECK(share.memory_limit == 1000000);
  CHECK(share.memory_left == 500000);  // what the kernel would drop counts as free
  CHECK(share.tasks == 512);
}

TEST_CASE("a container's own group is found at the root, whatever path the kernel tells") {
  const TempDir root;
  root.write("proc/self/cgroup", "0::/../../docker/0123\n");
  root.write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  root.write("sys/fs/cgroup/memory.max", "2000\n");
  root.write("sys/fs/cgroup/memory.current", "3000\n");  // above it for a moment
  const Share share = read_share(root.path());
  CHECK(share.cores == 1.5);
  CHECK(share.memory_left == 0);
}

TEST_CASE("groups of version 1 bound too, and their largest number is none") {
  const TempDir root;
  root.write("proc/self/cgroup", "4:memory:/a\n3:cpu,cpuacct:/a\n2:pids:/\n1:name=systemd:/a\n0::/\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  const Share none = read_share(root.path());
  CHECK_FALSE(none.memory_limit);
  CHECK_FALSE(none.cores);
  root.write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "8000\n");
  root.write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "5000\n");
  root.write("sys/fs/cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 1000\n");
  root.write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n");
  root.write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/pids/pids.max", "77\n");
  const Share share = read_share(root.path());
  CHECK(share.memory_left == 4000);
  CHECK(share.cores == 0.5);
  CHECK(share.tasks == 77);
}

TEST_CASE("files that say nothing of the kind bound nothing") {
  const TempDir root;
  root.write("proc/self/cgroup", "nonsense\n0:\n::\n0::/a\n\n");
  root.write("sys/fs/cgroup/a/cpu.max", "");
  root.write("sys/fs/cgroup/a/memory.max", "many\n");
  root.write("sys/fs/cgroup/cpu.max", "100000 0\n");
  const Share share = read_share(root.path());
  CHECK_FALSE(share.cores);
  CHECK_FALSE(share.memory_limit);
  CHECK_FALSE(share.tasks);
  CHECK_FALSE(read_share(root / "nothing").cores);
}
