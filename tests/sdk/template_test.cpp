// Every template, from the installed SDK alone: builds without a warning, has its manifest, and would be loaded.
#include <doctest/doctest.h>

#include "tests/sdk/sdk.hpp"
#include "tests/support/report.hpp"

using namespace sdk_test;
using plugin_test::contains;
using plugin_test::Json;

namespace {

// One plugin that `hexad plugin info` has nothing against.
void check_accepted(const fs::path& folder, const std::string& name) {
  const fs::path library = folder / ("lib" + name + ".so");
  const toy::Ended info = toy::run({"plugin", "info", library.string(), "--json"});
  REQUIRE_MESSAGE(info.code == 0, info.err);
  const Json plugin = Json::parse(info.out).at(0);
  CHECK(plugin.at("name") == name);
  CHECK_MESSAGE(plugin.at("status") == "ok", plugin.dump());
}

void check_template(const std::string& kind, const std::string& flags = "") {
  const TempDir dir;
  CAPTURE(kind);
  check_accepted(build_template(dir, kind, "my_" + kind, flags), "my_" + kind);
  must(dir, fmt::format("ctest --test-dir my_{}/build --output-on-failure", kind));
}

}  // namespace

TEST_CASE("loss_c, loss_cpp, generator, backend and environment build and are accepted") {
  for (const char* kind : {"loss_c", "loss_cpp", "generator", "backend", "environment"}) check_template(kind);
}

TEST_CASE("the losses build with clang too") {
  if (!has("clang++")) return test_report::skipped("there is no clang++");
  check_template("loss_c", "-DCMAKE_C_COMPILER=clang");
  check_template("loss_cpp", "-DCMAKE_CXX_COMPILER=clang++");
}

TEST_CASE("what uses the C++ wrapper builds with libc++ too") {
  const TempDir dir;
  dir.write("version.cpp", "#include <version>\n");
  if (!has("clang++") || sh(dir, "clang++ -std=c++20 -stdlib=libc++ -fsyntax-only version.cpp").code != 0)
    return test_report::skipped("there is no clang++ with libc++");
  for (const char* kind : {"loss_cpp", "generator", "backend", "environment"})
    check_template(kind, "-DCMAKE_CXX_COMPILER=clang++ -DCMAKE_CXX_FLAGS=-stdlib=libc++");
}

TEST_CASE("loss_cuda builds where nvcc is, and says what it needs where it is not") {
  if (has("nvcc")) {
    const TempDir dir;
    const fs::path folder = build_template(
        dir, "loss_cuda", "my_loss_cuda", "'-DCMAKE_CUDA_FLAGS=-Werror all-warnings -Xcompiler=-Wall,-Wextra,-Werror'");
    check_accepted(folder, "my_loss_cuda");
    must(dir, "ctest --test-dir my_loss_cuda/build --output-on-failure");
    const Json manifest = Json::parse(toy::read_text(folder / "libmy_loss_cuda.hexad.json"));
    CHECK(manifest.at("memory") == Json{"cuda"});
    CHECK(manifest.at("requires").contains("cuda"));
    must(dir, "sed -i 's#<hexad/abi.h>#<hexad/loss.hpp>#' my_loss_cuda/my_loss_cuda.cu");  // which is C++20
    must(dir, "cmake --build my_loss_cuda/build");
  } else {
    test_report::skipped("what builds: there is no nvcc");
  }
  if (fs::exists("/usr/bin/nvcc")) return test_report::skipped("what is refused: there is a /usr/bin/nvcc");
  const TempDir dir;
  REQUIRE(toy::run({"plugin", "new", "loss_cuda", "bare", "--into", dir.path().string()}).code == 0);
  const Shell run = sh(
      dir, fmt::format("unset CUDACXX; PATH=/usr/bin:/bin cmake -S bare -B build -DHexadSDK_DIR={}/lib/cmake/HexadSDK",
                       prefix().string()));
  CHECK(run.code != 0);
  CHECK_MESSAGE(contains(run.text, "bare has CUDA sources and no nvcc was found"), run.text);
}

TEST_CASE("a plugin states the ABI that it targets") {
  const TempDir dir;
  dir.write("CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.25)\nproject(p C)\nfind_package(HexadSDK 0.1 REQUIRED)\n"
            "hexad_add_plugin(NAME minor KIND loss TARGET_MINOR 7 MEMORY host cuda SOURCES minor.c)\n");
  dir.write("minor.c",
            "#include <hexad/abi.h>\n_Static_assert(HEXAD_TARGET_MINOR == 7, \"\");\n"
            "const hexad_plugin_desc* hexad_plugin_query_v1(const hexad_host* h) { (void)h; return 0; }\n");
  must(dir,
       fmt::format("cmake -B build -DHexadSDK_DIR={}/lib/cmake/HexadSDK && cmake --build build", prefix().string()));
  must(dir, "cmake --install build --prefix installed --strip");
  for (const char* place : {"build", "installed"}) {
    const fs::path library = dir / place / "lib/hexad/plugins/libminor.so";
    const Json manifest = Json::parse(toy::read_text(library.parent_path() / "libminor.hexad.json"));
    CHECK(manifest.at("abi").at("min_host_minor") == 7);
    CHECK(manifest.at("memory") == Json{"host", "cuda"});
    CHECK(manifest.at("size") == fs::file_size(library));
    const toy::Ended info = toy::run({"plugin", "info", library.string()});
    CHECK_MESSAGE(contains(info.out, "needs host ABI 1.7"), info.out << info.err);
  }
}

TEST_CASE("the example in Rust is a plugin like any other") {
  const TempDir dir;
  const std::string build = fs::absolute(toy::source_dir() / "sdk/examples/loss_rust/build.sh").string() + " $PWD";
  if (has("rustc")) {
    must(dir, build);
    check_accepted(dir.path(), "ppo_clip_rust");
  } else {
    CHECK(contains(sh(dir, build).text, "loss_rust: no rustc in PATH: apt-get install rustc"));
  }
}
