// NVIDIA's driver and cards: such as a test makes up, and a management library that says what it is told.
#include <doctest/doctest.h>

#include "app/doctor/topics.hpp"
#include "tests/app/doctor/found.hpp"
#include "tests/support/toy/toy.hpp"

using namespace doctor_test;
using toy::TempDir;

namespace {

const Build kCpu = {.version = "1", .libtorch = "2.11.0"};
const Build kCuda = {.version = "1", .libtorch = "2.11.0", .cuda = "13.0.48", .architectures = {"90a"}};
constexpr uint64_t kGiB = uint64_t{1} << 30;

Driver driver_of(const std::string& version, int cuda = 13000) {
  Driver driver;
  driver.version = version, driver.cuda = cuda;
  driver.cards = {{"NVIDIA H100", 80 * kGiB, kGiB, 9, 0, false}};
  return driver;
}

Driver none() {
  Driver driver;
  driver.why_not = "no library: libnvidia-ml.so.1: cannot open shared object file";
  return driver;
}

// What a machine of the test's own says of a build with CUDA.
Findings found(const Driver& driver, const std::optional<std::string>& visible = std::nullopt) {
  return gpus("/nowhere", kCuda, driver, visible);
}

}  // namespace

TEST_CASE("kernels run on the cards that their architecture names") {
  CHECK(has_kernels({"90a"}, 9, 0));
  CHECK_FALSE(has_kernels({"90a"}, 10, 0));
  CHECK_FALSE(has_kernels({"90a"}, 8, 9));
  CHECK(has_kernels({"80"}, 8, 6));
  CHECK(has_kernels({"80"}, 12, 0));  // by PTX
  CHECK_FALSE(has_kernels({"86"}, 8, 0));
  CHECK(has_kernels({"80-real"}, 8, 9));
  CHECK_FALSE(has_kernels({"80-real"}, 9, 0));
  CHECK(has_kernels({"100f"}, 10, 3));
  CHECK_FALSE(has_kernels({"100f"}, 11, 0));
  CHECK(has_kernels({"90a", "120"}, 12, 1));
  CHECK(has_kernels({"all-major"}, 7, 5));
  CHECK_FALSE(has_kernels({}, 9, 0));
}

TEST_CASE("a card that this build is for") {
  check_all_ok(found(driver_of("580.65.06")), "NVIDIA driver 580.65.06, CUDA 13.0");
  check_all_ok(found(driver_of("580.65.06")), "card 0: NVIDIA H100, 80.0 GiB, compute capability 9.0");
}

TEST_CASE("a driver that is too old for the build's CUDA is a problem, unless cuda-compat lifts it") {
  check_says(found(driver_of("550.54.15", 12040)), Level::problem,
             "NVIDIA driver 550.54.15, CUDA 12.4; this build's CUDA 13.0.48 wants 580 or newer | update the driver, or "
             "on a data centre's card install cuda-compat-13-0");
  check_all_ok(found(driver_of("550.54.15", 13000)), "NVIDIA driver 550.54.15, CUDA 13.0");
  check_says(gpus("/nowhere", kCpu, driver_of("470.1", 11040), std::nullopt), Level::ok, "NVIDIA driver 470.1");
}

TEST_CASE("a card that this build has no kernels for is a problem") {
  Driver driver = driver_of("580.65.06");
  driver.cards.push_back({"NVIDIA A100", 40 * kGiB, kGiB, 8, 0, false});
  check_says(found(driver), Level::ok, "card 0: NVIDIA H100");
  check_says(found(driver), Level::problem,
             "card 1: NVIDIA A100, 40.0 GiB, compute capability 8.0; this build's kernels are for sm_90a and do not "
             "run on it");
}

TEST_CASE("a card that others use, and one that is cut up, are notes") {
  Driver driver = driver_of("580.65.06");
  driver.cards[0].used = 60 * kGiB;
  check_says(found(driver), Level::note, "card 0: 60.0 GiB of its memory are in use by others");
  driver = driver_of("580.65.06"), driver.cards[0].mig = true;
  check_says(found(driver), Level::note, "card 0 is cut into instances (MIG)");
}

TEST_CASE("cards beside a build without CUDA are a note") {
  check_says(gpus("/nowhere", kCpu, driver_of("580.1"), std::nullopt), Level::note,
             "this build uses none of them: it has no CUDA | make build PRESET=cuda");
}

TEST_CASE("CUDA_VISIBLE_DEVICES: cards that it hides, and names of none") {
  Driver driver = driver_of("580.65.06");
  driver.cards.push_back(driver.cards[0]);
  CHECK(worst(found(driver, "0,1")) == Level::ok);
  CHECK(worst(found(driver, "GPU-1234, GPU-5678")) == Level::ok);
  check_says(found(driver, "1"), Level::note, "CUDA_VISIBLE_DEVICES=1 shows 1 of 2 cards");
  check_says(found(driver, ""), Level::note, "CUDA_VISIBLE_DEVICES= shows 0 of 2 cards");
  check_says(found(driver, "-1"), Level::note, "shows 0 of 2 cards");
  check_says(found(driver, "0,7,1"), Level::problem,
             "CUDA_VISIBLE_DEVICES=0,7,1 shows 1 of 2 cards: 7 is none, and what follows it is hidden too | name cards "
             "from 0 to 1");
  check_says(found(driver, "gpu0"), Level::problem, "gpu0 is none");
  check_says(found(driver, "0,,1"), Level::problem, "an empty entry is none");
}

TEST_CASE("without a driver: no card, a card without one, a container without its files, one that does not answer") {
  const TempDir root;
  check_all_ok(gpus(root.path(), kCuda, none(), std::nullopt), "no NVIDIA card: runs use CPUs");
  root.write("sys/bus/pci/devices/0000:01:00.0/vendor", "0x8086\n");
  root.write("sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n");
  root.write("sys/bus/pci/devices/0000:02:00.0/vendor", "0x10de\n");
  root.write("sys/bus/pci/devices/0000:02:00.0/class", "0x0c0330\n");  // its USB controller
  check_all_ok(gpus(root.path(), kCuda, none(), std::nullopt), "no NVIDIA card");
  root.write("sys/bus/pci/devices/0000:02:00.0/class", "0x030200\n");
  check_says(gpus(root.path(), kCuda, none(), std::nullopt), Level::problem,
             "there is an NVIDIA card, and no driver for it | install NVIDIA's driver 580 or newer; until then "
             "cluster.device=cpu");
  check_says(gpus(root.path(), kCpu, none(), std::nullopt), Level::note, "and no driver for it");
  root.write("proc/driver/nvidia/version", "NVRM version: 580\n");
  check_says(gpus(root.path(), kCuda, none(), std::nullopt), Level::problem, "docker run --gpus all");
  Driver driver;
  driver.why_not = "nvmlInit_v2: Driver/library version mismatch";
  check_says(gpus(root.path(), kCuda, driver, std::nullopt), Level::problem,
             "the driver does not answer: nvmlInit_v2: Driver/library version mismatch | the driver was updated");
  driver.why_not = "asking libnvidia-ml.so.1 did not end within 10 s";
  check_says(gpus(root.path(), kCuda, driver, std::nullopt), Level::problem, "see nvidia-smi and dmesg");
  driver = driver_of("580.1"), driver.cards.clear();
  check_says(gpus(root.path(), kCuda, driver, std::nullopt), Level::problem, "the driver sees no card");
}

namespace {

// libnvidia-ml.so.1 of a machine with two cards. CRASHES: in the first call. FAILS: it begins with an error.
constexpr const char* kLibrary = R"(
#define API __attribute__((visibility("default")))
#include <stdlib.h>
#include <string.h>
struct memory { unsigned long long total, free, used; };
API int nvmlInit_v2(void) {
#ifdef CRASHES
  abort();
#endif
#ifdef FAILS
  return 18;
#endif
  return 0;
}
API const char* nvmlErrorString(int code) { return code == 18 ? "Driver/library version mismatch" : "Unknown Error"; }
API int nvmlSystemGetDriverVersion(char* text, unsigned size) { strncpy(text, "580.65.06", size); return 0; }
API int nvmlSystemGetCudaDriverVersion_v2(int* version) { *version = 13000; return 0; }
API int nvmlDeviceGetCount_v2(unsigned* count) { *count = 2; return 0; }
API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) { *device = (char*)0 + index + 1; return 0; }
API int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  strncpy(text, device == (char*)0 + 1 ? "First" : "Second", size);
  return 0;
}
API int nvmlDeviceGetMemoryInfo(void* device, struct memory* memory) {
  memory->total = 1000, memory->free = 900, memory->used = 100;
  return 0;
}
API int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) { *major = 9, *minor = 0; return 0; }
#ifndef OLD
API int nvmlDeviceGetMigMode(void* device, unsigned* now, unsigned* later) {
  *now = *later = device != (char*)0 + 1;
  return 0;
}
#endif
)";

}  // namespace

TEST_CASE("the driver's library is asked for its version and its cards") {
  const plugin_test::PluginFolder folder;
  const Driver driver = ask_driver(folder.compile("nvml", "", kLibrary).string());
  CHECK(driver.why_not == "");
  CHECK(driver.version == "580.65.06");
  CHECK(driver.cuda == 13000);
  REQUIRE(driver.cards.size() == 2);
  CHECK(driver.cards[0].name == "First");
  CHECK(driver.cards[1].name == "Second");
  CHECK(driver.cards[0].memory == 1000);
  CHECK(driver.cards[0].used == 100);
  CHECK(driver.cards[0].major == 9);
  CHECK_FALSE(driver.cards[0].mig);
  CHECK(driver.cards[1].mig);
  const Driver old = ask_driver(folder.compile("old", "-DOLD", kLibrary).string());
  CHECK(old.why_not == "");  // cards of a driver without instances
  CHECK(old.cards.size() == 2);
}

TEST_CASE("a driver's library that is not there, refuses, lacks a function or crashes says so") {
  const plugin_test::PluginFolder folder;
  CHECK(ask_driver("/nowhere/libnvidia-ml.so.1").why_not.starts_with("no library: /nowhere/libnvidia-ml.so.1: "));
  const Driver failed = ask_driver(folder.compile("fails", "-DFAILS", kLibrary).string());
  CHECK(failed.why_not == "nvmlInit_v2: Driver/library version mismatch");
  CHECK(failed.version == "");
  const Driver empty = ask_driver(folder.compile("empty", "", "int nothing;").string());
  CHECK(empty.why_not == "nvmlInit_v2: is not in the library");
  const std::string crashing = folder.compile("crashes", "-DCRASHES", kLibrary).string();
  CHECK(ask_driver(crashing).why_not == "asking " + crashing + " crashed with SIGABRT");
}
