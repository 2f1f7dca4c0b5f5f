// The SDK as a stranger has it: installed into a folder of the test's own, used by shell commands.
#pragma once
#include <algorithm>

#include "tests/support/toy/program.hpp"

namespace sdk_test {

namespace fs = std::filesystem;
using toy::TempDir;

struct Shell {
  int code = -1;
  std::string text;  // standard output and error
};

// Runs a command of the shell in `dir`.
inline Shell sh(const TempDir& dir, const std::string& command) {
  const std::string script = dir.write("command.sh", "set -eu\n" + command + "\n").string();
  const int status =
      std::system(fmt::format("cd {} && bash {} > {}.out 2>&1", dir.path().string(), script, script).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, toy::read_text(script + ".out")};
}

// The same, for a command that must succeed.
inline std::string must(const TempDir& dir, const std::string& command) {
  const Shell run = sh(dir, command);
  REQUIRE_MESSAGE(run.code == 0, command << "\n" << run.text);
  return run.text;
}

inline bool has(const std::string& program) {
  return std::system(fmt::format("command -v {} > /dev/null", program).c_str()) == 0;
}

inline std::string build_dir() { return toy::hexad().parent_path().parent_path().string(); }

// The component `sdk`, installed once a test program.
inline const fs::path& prefix() {
  static const TempDir dir;
  static const fs::path path = [] {
    must(dir, fmt::format("cmake --install {} --component sdk --prefix {}", build_dir(), (dir / "sdk").string()));
    return dir / "sdk";
  }();
  return path;
}

// Every file below a folder, sorted, relative to it.
inline std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_directory()) files.push_back(fs::relative(entry.path(), folder).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// `hexad plugin new` in `dir`, then configures and builds it against the installed SDK with warnings as errors.
// `flags` go to the first cmake. Returns the folder with the plugin's two files.
inline fs::path build_template(const TempDir& dir, const std::string& kind, const std::string& name,
                               const std::string& flags = "") {
  const toy::Ended made = toy::run({"plugin", "new", kind, name, "--into", dir.path().string()});
  REQUIRE_MESSAGE(made.code == 0, made.err);
  const std::string log = must(
      dir, fmt::format("export CFLAGS='-Wall -Wextra -Wpedantic -Werror'; export CXXFLAGS=$CFLAGS\n"
                       "cmake -S {0} -B {0}/build -DHexadSDK_DIR={1}/lib/cmake/HexadSDK {2}\ncmake --build {0}/build",
                       name, prefix().string(), flags));
  CHECK_MESSAGE(log.find("arning") == std::string::npos, log);
  return dir / name / "build/lib/hexad/plugins";
}

}  // namespace sdk_test
