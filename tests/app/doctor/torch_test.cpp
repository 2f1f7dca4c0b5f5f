// What the loader gives to the runtime, and what is said of LibTorch.
#include <doctest/doctest.h>

#include "app/doctor/topics.hpp"
#include "tests/app/doctor/found.hpp"
#include "tests/support/toy/toy.hpp"

using namespace doctor_test;
using plugin_test::PluginFolder;
using toy::TempDir;

namespace {

const Build kNone = {.version = "0.1.0"};
const Build kCpu = {.version = "0.1.0", .commit = "abc123", .libtorch = "2.11.0"};
const Build kCuda = {.version = "0.1.0", .libtorch = "2.11.0", .cuda = "13.0.48", .architectures = {"90a", "100a"}};

// A header of LibTorch's beside `folder`/lib.
std::string libtorch_in(const TempDir& dir, const std::string& folder, int minor) {
  dir.write(folder + "/include/torch/headeronly/version.h",
            fmt::format("#define TORCH_VERSION_MAJOR 2\n\n#define TORCH_VERSION_MINOR {}\n#define TORCH_VERSION_PATCH "
                        "0\n#define TORCH_VERSION \\\n  \"2\"\n",
                        minor));
  return dir.write(folder + "/lib/libtorch_cpu.so", "").string();
}

}  // namespace

TEST_CASE("the program's line says what it was built as") {
  check_all_ok(program(kNone), "0.1.0, ABI 1.");
  check_all_ok(program(kNone), "built without LibTorch");
  check_all_ok(program(kCpu), "0.1.0, commit abc123, ABI 1.");
  check_all_ok(program(kCpu), "built for CPUs with LibTorch 2.11.0");
  check_all_ok(program(kCuda), "built with LibTorch 2.11.0 and CUDA 13.0.48 for sm_90a, sm_100a");
}

TEST_CASE("the loader says which libraries a library gets, and which not") {
  const PluginFolder folder;
  const toy::fs::path needed = folder.compile("needed", "-Wl,-soname,libneeded.so", "int nothing;");
  const std::string flags = fmt::format("-Wl,--no-as-needed -L{0} -lneeded -lm -Wl,-rpath,{0}", folder.path().string());
  const toy::fs::path library = folder.compile("needs", flags, "int something;");
  const Linked all = linked(library);
  CHECK(all.problem == "");
  REQUIRE(all.find("libneeded.so"));
  CHECK(all.find("libneeded.so")->path == needed.string());
  REQUIRE(all.find("libm.so"));
  CHECK(all.find("libm.so")->path.starts_with("/"));
  CHECK_FALSE(all.find("libother.so"));
  toy::fs::remove(needed);
  const Linked lacking = linked(library);
  REQUIRE(lacking.find("libneeded.so"));
  CHECK(lacking.find("libneeded.so")->path == "");
  const TempDir dir;
  CHECK(contains(linked(dir.write("libbad.so", "no library")).problem, "libbad.so"));
}

TEST_CASE("a version is read of a file's name, or of a header beside it") {
  const TempDir dir;
  CHECK(version_of(dir.write("a/libnccl.so.2.28.3", ""), "nccl.h", {}) == "2.28.3");
  toy::fs::create_symlink("libnccl.so.2.28.3", dir / "a/libnccl.so.2");
  CHECK(version_of(dir / "a/libnccl.so.2", "nccl.h", {}) == "2.28.3");
  const std::vector<std::string> names = {"X_MAJOR", "X_MINOR"};
  const toy::fs::path library = dir.write("b/lib/machine/libx.so.2", "");
  CHECK(version_of(library, "x.h", names) == "");
  dir.write("b/include/x.h", "#define X_MAJOR_OTHER 7\n#define X_MAJOR 3\n#define X_MINOR   12 // twelve\n");
  CHECK(version_of(library, "x.h", names) == "3.12");
  dir.write("b/lib/include/x.h", "#define X_MAJOR 4\n");  // a header that lacks one is passed
  CHECK(version_of(library, "x.h", names) == "3.12");
}

TEST_CASE("LibTorch that is found") {
  const TempDir dir;
  const Linked linked = {.libraries = {{"libtorch_cpu.so", libtorch_in(dir, "torch", 11)}}, .problem = ""};
  check_all_ok(libtorch(kCpu, "/lib/libhexad_runtime.so", linked), "2.11.0, " + (dir / "torch/lib").string());
  const Linked other = {.libraries = {{"libtorch_cpu.so", libtorch_in(dir, "other", 8)}}, .problem = ""};
  check_says(libtorch(kCpu, "/lib/libhexad_runtime.so", other), Level::problem,
             "is LibTorch 2.8.0, and this program was built with 2.11.0: their C++ differs | take its folder out of "
             "LD_LIBRARY_PATH");
}

TEST_CASE("LibTorch that is missing, or of which a part is") {
  const toy::fs::path runtime = "/p/lib/libhexad_runtime.so";
  check_says(libtorch(kCpu, runtime, std::nullopt), Level::problem, "/p/lib/libhexad_runtime.so is missing");
  check_says(libtorch(kNone, runtime, std::nullopt), Level::note, "this build has none: a run has one rank");
  const Linked lost = {.libraries = {{"libtorch_cpu.so", ""}, {"libcudart.so.13", ""}}, .problem = ""};
  check_says(libtorch(kCpu, runtime, lost), Level::problem,
             "libtorch_cpu.so is not found, which /p/lib/libhexad_runtime.so needs | tools/setup.sh fetches LibTorch");
  check_says(libtorch(kCpu, runtime, lost), Level::problem,
             "libcudart.so.13 is not found, which /p/lib/libhexad_runtime.so needs | install it");
  check_says(libtorch(kCpu, runtime, Linked{{}, "x.so: file too short"}), Level::problem,
             "/p/lib/libhexad_runtime.so cannot be loaded: x.so: file too short");
}

TEST_CASE("NCCL and cuDNN of a build with CUDA are told with their versions") {
  const TempDir dir;
  const std::string nccl = dir.write("nccl/lib/libnccl.so.2", "").string();
  dir.write("nccl/include/nccl.h", "#define NCCL_MAJOR 2\n#define NCCL_MINOR 28\n#define NCCL_PATCH 9\n");
  const std::string cudnn = dir.write("cudnn/libcudnn.so.9", "").string();
  const Linked linked = {.libraries = {{"libtorch_cpu.so", libtorch_in(dir, "torch", 11)},
                                       {"libnccl.so.2", nccl},
                                       {"libcudnn.so.9", cudnn}},
                         .problem = ""};
  check_all_ok(libtorch(kCuda, "/r.so", linked), "NCCL 2.28.9, " + nccl);
  check_all_ok(libtorch(kCuda, "/r.so", linked), "cuDNN, " + cudnn);
}
