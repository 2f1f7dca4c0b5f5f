// What the SDK installs and packs, and that its headers compile as the languages that they promise.
#include <doctest/doctest.h>

#include "tests/sdk/sdk.hpp"
#include "tests/support/report.hpp"

using namespace sdk_test;

namespace {

bool contains(const std::vector<std::string>& files, const std::string& file) {
  return std::find(files.begin(), files.end(), file) != files.end();
}

const std::vector<std::string>& expected() {
  static const std::vector<std::string> files = {
      "include/dlpack.h",
      "include/hexad/abi.h",
      "include/hexad/check.h",
      "include/hexad/plugin.hpp",
      "lib/cmake/HexadSDK/HexadPlugin.cmake",
      "lib/cmake/HexadSDK/HexadSDKConfig.cmake",
      "lib/cmake/HexadSDK/HexadSDKConfigVersion.cmake",
      "lib/cmake/HexadSDK/arc4random.cpp",
      "lib/cmake/HexadSDK/check.map",
      "lib/cmake/HexadSDK/plugin.map",
      "lib/cmake/HexadSDK/write_manifest.cmake",
      "share/hexad/template/README.md.in",
      "share/hexad/template/.gitignore.in",
      "share/hexad/template/loss_c/@NAME@.c.in",
      "share/hexad/examples/loss_rust/ppo_clip_rust.rs",
      "share/doc/hexad-sdk/README.md",
      "share/doc/hexad-sdk/plugins.md",
      "share/doc/hexad-sdk/ABI.md",
      "share/doc/hexad-sdk/NAMES.md",
      "share/doc/hexad-sdk/CONFIG.md",
  };
  return files;
}

}  // namespace

TEST_CASE("the component sdk holds the SDK and nothing of the engine") {
  const auto files = files_below(prefix());
  for (const std::string& file : expected()) CHECK_MESSAGE(contains(files, file), file);
  CHECK_FALSE(contains(files, "bin/hexad"));
  for (const std::string& file : files) CHECK_MESSAGE(file.find("lib/hexad") == std::string::npos, file);
}

TEST_CASE("abi.h compiles as C11, C17, C++17 and C++20, the wrapper as C++20, with gcc and clang") {
  const TempDir dir;
  dir.write("abi.c", "#include <hexad/abi.h>\n");
  dir.write("abi.cpp", "#include <hexad/abi.h>\n");
  for (const char* header : {"plugin", "loss", "generator", "backend", "tensor", "services", "stop_strings", "names"})
    dir.write(fmt::format("{}_only.cpp", header), fmt::format("#include <hexad/{}.hpp>\n", header));
  const std::string flags = "-Wall -Wextra -Wpedantic -Werror -fsyntax-only -I " + (prefix() / "include").string();
  for (const auto& [c, cpp] : {std::pair{"gcc", "g++"}, std::pair{"clang", "clang++"}}) {
    if (!has(c)) {
      test_report::skipped(fmt::format("there is no {}", c));
      continue;
    }
    for (const char* standard : {"c11", "c17"}) must(dir, fmt::format("{} -std={} {} abi.c", c, standard, flags));
    for (const char* standard : {"c++17", "c++20"})
      must(dir, fmt::format("{} -std={} {} abi.cpp", cpp, standard, flags));
    must(dir, fmt::format("for file in *_only.cpp; do {} -std=c++20 {} $file; done", cpp, flags));
  }
}

TEST_CASE("the installed examples build where they lie, against the SDK that they came with") {
  const TempDir dir;
  for (const char* example : {"loss_c", "environment_c"})
    must(dir,
         fmt::format("cmake -S {0}/share/hexad/examples/{1} -B {1} && cmake --build {1}", prefix().string(), example));
  CHECK(fs::exists(dir / "loss_c/lib/hexad/plugins/libppo_clip_c.hexad.json"));
  if (!has("rustc")) return test_report::skipped("the example in Rust: there is no rustc");
  must(dir, fmt::format("{}/share/hexad/examples/loss_rust/build.sh $PWD/rust", prefix().string()));
  CHECK(fs::exists(dir / "rust/libppo_clip_rust.hexad.json"));
}

TEST_CASE("the build tree has the installed layout, so that find_package and templates work from it") {
  for (const std::string& file : expected()) {
    if (file.find("share/doc") == std::string::npos) CHECK_MESSAGE(fs::exists(fs::path(build_dir()) / file), file);
  }
}

TEST_CASE("the Debian package is hexad-sdk and holds what is installed") {
  if (!has("dpkg-deb")) return test_report::skipped("there is no dpkg-deb");
  const TempDir dir;
  must(dir, fmt::format("cpack -G DEB --config {}/CPackConfig.cmake -B $PWD", build_dir()));
  CHECK(must(dir, "dpkg-deb --field hexad-sdk_*.deb Package") == "hexad-sdk\n");
  must(dir, "dpkg-deb --extract hexad-sdk_*.deb unpacked");
  const auto files = files_below(dir / "unpacked/usr");
  CHECK(files == files_below(prefix()));
  must(dir, "printf '#include <hexad/abi.h>\\n' > abi.c && cc -std=c11 -Iunpacked/usr/include -fsyntax-only abi.c");
}

TEST_CASE("the source tarball builds and installs by itself") {
  const TempDir dir;
  must(dir, fmt::format("cpack -G TGZ --config {}/CPackSourceConfig.cmake -B $PWD", build_dir()));
  must(dir, "tar -xzf hexad-sdk-*.tar.gz && rm hexad-sdk-*.tar.gz && cmake -S hexad-sdk-* -B build");
  must(dir, "cmake --build build && cmake --install build --prefix installed");
  const auto files = files_below(dir / "installed");
  for (const std::string& file : expected()) CHECK_MESSAGE(contains(files, file), file);
  must(dir,
       "printf '#include <hexad/plugin.hpp>\\n' > wrapper.cpp && c++ -std=c++20 -Iinstalled/include -fsyntax-only "
       "wrapper.cpp");
}
