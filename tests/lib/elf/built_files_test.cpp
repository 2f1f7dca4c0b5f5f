// What every program, library and plugin of the build, of an installation and of a bundle says of how it was linked and
// compiled: where it looks for libraries, and what protects it.
#include <doctest/doctest.h>

#include <set>

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/elf/elf.hpp"
#include "tests/support/toy/program.hpp"

using namespace hexad;
using toy::contains;
using toy::TempDir;
namespace fs = toy::fs;

namespace {

fs::path build_dir() { return toy::hexad().parent_path().parent_path(); }

bool is_sanitized() {
  const std::string commands = read_file(build_dir() / "compile_commands.json");
  return contains(commands, " -fsanitize=");
}

// A program or a shared object; objects of the compiler are none.
bool is_elf(const fs::path& file) {
  char header[18] = {};
  std::ifstream(file, std::ios::binary).read(header, sizeof header);
  return std::string_view(header, 4) ==
             "\x7f"
             "ELF" &&
         (header[16] == 2 || header[16] == 3);
}

// Of the build, without what CMake tries its compilers with.
std::vector<fs::path> elf_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator entry(folder), end; entry != end; ++entry) {
    if (entry->path().filename() == "CMakeFiles") entry.disable_recursion_pending();
    if (entry->is_regular_file() && !entry->is_symlink() && is_elf(entry->path())) files.push_back(entry->path());
  }
  return files;
}

elf::Info info_of(const fs::path& file) {
  const std::string bytes = read_file(file);
  return elf::read(std::as_bytes(std::span(bytes)), file.string());
}

// Paths that do not depend on where the program is started; an empty or relative one would load whatever lies in the
// current folder under a library's name.
void check_run_paths(const fs::path& file, const elf::Info& info) {
  for (const std::string& path : info.run_paths)
    CHECK_MESSAGE((path.starts_with('/') || path == "$ORIGIN" || path.starts_with("$ORIGIN/")),
                  file.string() << ": RPATH has the entry '" << path << "', wanted an absolute path or $ORIGIN/...");
}

bool imports(const elf::Info& info, const std::function<bool(const std::string&)>& wanted) {
  return std::ranges::any_of(info.imports, wanted);
}

// elf::read has refused what has an executable stack, or is not position-independent. Of small plugins not each needs a
// guard of the stack: one check of the C library's is enough to know how it was compiled.
void check_hardened(const fs::path& file, const elf::Info& info) {
  CHECK_MESSAGE(info.bind_now, file.string() << " binds lazily, wanted -z now");
  CHECK_MESSAGE(info.relro, file.string() << " has no read-only relocations, wanted -z relro");
  const std::string name = file.filename().string();
  const bool guard = imports(info, [](const std::string& symbol) { return symbol == "__stack_chk_fail"; });
  const bool sizes = imports(info, [](const std::string& symbol) { return symbol.ends_with("_chk"); });
  const bool whole =
      std::set<std::string>{"hexad", "hexad-verify", "libhexad_modeling.so", "libhexad_runtime.so"}.contains(name);
  const bool plugin = file.parent_path().filename() == "plugins" && name.ends_with(".so") && !contains(name, "_check");
  if (whole) CHECK_MESSAGE(guard, file.string() << " has no guards of its stack, wanted -fstack-protector-strong");
  if (is_sanitized()) return;
  if (name == "hexad" || name == "hexad-verify")
    CHECK_MESSAGE(sizes, file.string() << " calls libc without checks of sizes, wanted -D_FORTIFY_SOURCE=2");
  if (plugin) CHECK_MESSAGE((guard || sizes), file.string() << " was compiled without hardening");
}

// Empty files under the names of all libraries that it loads: none of them is opened.
void check_start(const fs::path& program) {
  const TempDir dir;
  const std::string list = (dir / "list").string();
  REQUIRE(std::system(fmt::format("ldd {} > {}", program.string(), list).c_str()) == 0);
  std::istringstream lines(read_file(list));
  size_t names = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, arrow;
    words >> name >> arrow;
    if (arrow == "=>") dir.write("here/" + name, ""), ++names;
  }
  CHECK(names > 5);
  CHECK(std::system(
            fmt::format("cd {} && {} --version > /dev/null", (dir / "here").string(), program.string()).c_str()) == 0);
}

}  // namespace

TEST_CASE("what is built looks for libraries where it says, and is hardened") {
  std::vector<fs::path> files;
  for (const char* folder : {"bin", "lib", "tests"})
    for (const fs::path& file : elf_files(build_dir() / folder)) files.push_back(file);
  CHECK(files.size() > 10);
  for (const fs::path& file : files) {
    const elf::Info info = info_of(file);
    check_run_paths(file, info);
    check_hardened(file, info);
  }
  check_start(toy::hexad());
}

TEST_CASE("what is installed, too") {
  const TempDir dir;
  REQUIRE(std::system(fmt::format("cmake --install {} --prefix {} > {} 2>&1", build_dir().string(),
                                  (dir / "prefix").string(), (dir / "log").string())
                          .c_str()) == 0);
  const std::vector<fs::path> files = elf_files(dir / "prefix");
  CHECK(files.size() > 5);
  for (const fs::path& file : files) {
    const elf::Info info = info_of(file);
    check_run_paths(file, info);
    check_hardened(file, info);
  }
  check_start(dir / "prefix/bin/hexad");
}

TEST_CASE("a bundle, with the libraries of the system that it takes along") {
  const TempDir dir;
  const int packed = std::system(fmt::format("{}/tools/bundle.sh {} {} > {} 2>&1", toy::source_dir().string(),
                                             build_dir().string(), (dir / "bundle").string(), (dir / "log").string())
                                     .c_str());
  REQUIRE_MESSAGE(packed == 0, read_file(dir / "log"));
  const std::vector<fs::path> files = elf_files(dir / "bundle");
  CHECK(files.size() > 10);
  for (const fs::path& file : files) {
    const elf::Info info = info_of(file);
    check_run_paths(file, info);
    const std::string folder = file.parent_path().filename();
    const bool ours = folder == "bin" || folder == "plugins" || contains(file.filename().string(), "hexad");
    if (ours) check_hardened(file, info);
  }
  check_start(dir / "bundle/bin/hexad");
}

TEST_CASE("every file of C and C++ is compiled with the guards, but for loops of kernels") {
  const auto commands = read_json<nlohmann::json>(build_dir() / "compile_commands.json");
  const std::vector<std::string> kernels = {"modeling/op/cpu/", "plugins/native/cpu/",
                                            "plugins/native/sample/row_kernel.cpp",
                                            "core/cluster/refit/weight_sum.cpp"};
  const bool sanitized = is_sanitized();
  for (const auto& entry : commands) {
    const std::string file = entry.at("file"), command = entry.at("command");
    if (file.ends_with(".cu")) continue;
    CHECK_MESSAGE(contains(command, " -fstack-protector-strong"), file);
    CHECK_MESSAGE((sanitized || contains(command, " -D_FORTIFY_SOURCE=2")), file);
    if (!contains(command, " -fno-stack-protector")) continue;
    CHECK_MESSAGE(std::ranges::any_of(kernels, [&](const std::string& kernel) { return contains(file, kernel); }),
                  file);
  }
}

TEST_CASE("an RPATH is read with its empty entries, as the loader reads it") {
  const TempDir dir;
  dir.write("empty.c", "int here;\n");
  const auto paths = [&](const std::string& path) {
    const std::string library = (dir / "x.so").string();
    REQUIRE(
        std::system(fmt::format("cc -shared -fPIC {}/empty.c -o {} '-Wl,-rpath,{}'", dir.path().string(), library, path)
                        .c_str()) == 0);
    return info_of(library).run_paths;
  };
  using Paths = std::vector<std::string>;
  CHECK(paths("/a:$ORIGIN/../b") == Paths{"/a", "$ORIGIN/../b"});
  CHECK(paths("/a:") == Paths{"/a", ""});
  CHECK(paths(":/a") == Paths{"", "/a"});
  CHECK(paths("/a::/b") == Paths{"/a", "", "/b"});
  CHECK(paths("lib") == Paths{"lib"});
}

TEST_CASE("what a file wants of others is read where it exports nothing, and whether its tables become read-only") {
  const TempDir dir;
  dir.write("main.c", "#include <stdio.h>\nint main(void) { return puts(\"\"); }\n");
  const std::string program = (dir / "program").string();
  const auto built = [&](const std::string& flags) {
    REQUIRE(std::system(fmt::format("cc -fPIE -pie {}/main.c -o {} {}", dir.path().string(), program, flags).c_str()) ==
            0);
    return info_of(program);
  };
  for (const char* flags : {"-Wl,-z,now -Wl,-z,relro", "-Wl,-z,lazy -Wl,-z,norelro -Wl,--hash-style=gnu"}) {
    const elf::Info info = built(flags);
    CHECK(std::ranges::count(info.imports, "puts") == 1);
    CHECK(std::ranges::count(info.exports, "puts") == 0);
    CHECK(info.bind_now == contains(flags, "now"));
    CHECK(info.relro == !contains(flags, "norelro"));
  }
}
