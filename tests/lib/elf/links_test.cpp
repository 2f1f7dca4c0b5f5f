// What a library brings along is under the rule of the library itself, and what is loaded is what was looked at.
#include "lib/elf/links.hpp"

#include <dlfcn.h>

#include "lib/elf/library.hpp"
#include "tests/plugin/plugin_folder.hpp"

using hexad::ResolvedFile;
using hexad::elf::insecure_needed;
using hexad::elf::open_library;
using hexad::elf::read_links;
using namespace plugin_test;

namespace {

fs::path make_folder(const PluginFolder& folder, const char* name, mode_t mode = 0755) {
  fs::create_directories(folder.path() / name);
  chmod((folder.path() / name).c_str(), mode);
  return folder.path() / name;
}

// libNAME.so of this source, moved to FOLDER.
fs::path library(const PluginFolder& folder, const std::string& name, const fs::path& to, const std::string& source,
                 const std::string& flags = "") {
  const fs::path made = folder.compile(name, "-fvisibility=default -Wl,--no-as-needed " + flags, source);
  chmod(made.c_str(), 0755);
  if (to != folder.path()) fs::rename(made, to / made.filename());
  return to / made.filename();
}

std::string problem_of(const fs::path& file) { return insecure_needed(ResolvedFile(file)).value_or(""); }

}  // namespace

TEST_CASE("needed libraries and run paths are read as they are written") {
  const PluginFolder folder;
  library(folder, "dep", folder.path(), "int dep(void) { return 7; }");
  const std::string link = fmt::format("-L{} -ldep ", folder.path().string());
  const auto newer =
      read_links(ResolvedFile(library(folder, "newer", folder.path(), "int dep(void); int x(void) { return dep(); }",
                                      link + "'-Wl,--enable-new-dtags,-rpath,$ORIGIN:/opt/x'")));
  CHECK(newer.needed.at(0) == "libdep.so");
  CHECK(newer.run_paths == std::vector<std::string>{"$ORIGIN", "/opt/x"});
  CHECK(newer.rpaths.empty());
  const auto older =
      read_links(ResolvedFile(library(folder, "older", folder.path(), "int dep(void); int x(void) { return dep(); }",
                                      link + "'-Wl,--disable-new-dtags,-rpath,$ORIGIN'")));
  CHECK(older.rpaths == std::vector<std::string>{"$ORIGIN"});
  CHECK(older.run_paths.empty());
}

TEST_CASE("a file that is no library, or is cut anywhere, is an error or has no more to say") {
  const PluginFolder folder;
  std::ofstream(folder.path() / "text") << std::string(200, 'x');
  CHECK(contains(error_of([&] { read_links(ResolvedFile(folder.path() / "text")); }), "text: no 64-bit ELF file"));
  const fs::path whole = library(folder, "a", folder.path(), "int a;", "'-Wl,-rpath,$ORIGIN'");
  const std::string bytes = read_text(whole);
  int refused = 0;
  for (size_t size = 0; size < bytes.size(); size += 97) {
    std::ofstream(folder.path() / "cut", std::ios::binary) << bytes.substr(0, size);
    refused += error_of([&] { read_links(ResolvedFile(folder.path() / "cut")); }) != "(no error)";
  }
  CHECK(refused > 10);
}

TEST_CASE("a library found by a run path is judged, with its folder and what it needs itself") {
  const PluginFolder folder;
  const fs::path libs = make_folder(folder, "libs"), deep = make_folder(folder, "deep");
  library(folder, "deep", deep, "int deep(void) { return 1; }");
  const fs::path dep = library(folder, "dep", libs, "int deep(void); int dep(void) { return deep(); }",
                               fmt::format("-L{} -ldeep '-Wl,-rpath,$ORIGIN/../deep'", deep.string()));
  const fs::path main = library(folder, "main", folder.path(), "int dep(void); int answer(void) { return dep(); }",
                                fmt::format("-L{} -ldep '-Wl,-rpath,${{ORIGIN}}/libs'", libs.string()));
  CHECK(problem_of(main) == "");
  chmod(dep.c_str(), 0777);
  CHECK(problem_of(main) ==
        fmt::format("libmain.so needs libdep.so: {} is writable by everyone (mode 0777)", dep.string()));
  chmod(dep.c_str(), 0755);
  chmod(libs.c_str(), 0777);
  CHECK(contains(problem_of(main), fmt::format("{} is writable by everyone (mode 0777)", libs.string())));
  chmod(libs.c_str(), 0755);
  chmod(deep.c_str(), 0777);
  CHECK(contains(problem_of(main), "libdep.so needs libdeep.so: it is looked for in"));
  chmod(deep.c_str(), 0755);
  make_folder(folder, "libs/glibc-hwcaps", 0777);
  CHECK(contains(problem_of(main), "glibc-hwcaps is writable by everyone"));
  chmod((libs / "glibc-hwcaps").c_str(), 0755);
  CHECK(problem_of(main) == "");
  // What lies in a folder for other processors is not all that may be taken.
  make_folder(folder, "libs/glibc-hwcaps/x86-64-v4");
  fs::copy_file(dep, libs / "glibc-hwcaps/x86-64-v4/libdep.so");
  chmod(dep.c_str(), 0777);
  CHECK(contains(problem_of(main), dep.string() + " is writable by everyone"));
  chmod(dep.c_str(), 0755);
  CHECK(problem_of(main) == "");
  for (const char* older : {"libs/tls", "libs/x86_64", "libs/tls/haswell/x86_64"}) {
    CAPTURE(older);
    const fs::path place = make_folder(folder, older, 0777);
    CHECK(contains(problem_of(main), fmt::format("libmain.so needs libdep.so: it is looked for in {}, and {} is "
                                                 "writable by everyone (mode 0777)",
                                                 place.string(), place.string())));
    fs::remove(place);
  }
}

TEST_CASE("libraries are not taken from the working directory, whoever owns it") {
  const PluginFolder folder;
  const fs::path dep = library(folder, "dep", folder.path(), "int dep(void) { return 1; }");
  const char* const source = "int dep(void); int answer(void) { return dep(); }";
  for (const char* path : {"$ORIGIN:", ":$ORIGIN", "$ORIGIN::/opt/x", "lib", "."}) {
    CAPTURE(path);
    for (const char* tags : {"--enable-new-dtags", "--disable-new-dtags"}) {
      const fs::path main = library(folder, "main", folder.path(), source,
                                    fmt::format("-L{} -ldep '-Wl,{},-rpath,{}'", folder.path().string(), tags, path));
      CHECK(contains(problem_of(main), main.string() + " has the run path '"));
      CHECK(contains(problem_of(main), "', so that libraries are taken from wherever it is started"));
    }
  }
  fs::copy_file(dep, "libhexad_test_dep.so", fs::copy_options::overwrite_existing);
  const fs::path main = library(folder, "main", folder.path(), source, "./libhexad_test_dep.so");
  fs::remove("libhexad_test_dep.so");
  CHECK(problem_of(main) ==
        main.string() + " needs ./libhexad_test_dep.so, which is looked for wherever it is started");
}

TEST_CASE("a folder that is looked into first, or that anybody could make, is told") {
  const PluginFolder folder;
  const fs::path open = make_folder(folder, "open", 01777), libs = make_folder(folder, "libs");
  library(folder, "dep", libs, "int dep(void) { return 1; }");
  const auto with = [&](const std::string& run_path) {
    return problem_of(library(folder, "main", folder.path(), "int dep(void); int answer(void) { return dep(); }",
                              fmt::format("-L{} -ldep '-Wl,-rpath,{}'", libs.string(), run_path)));
  };
  CHECK(with("$ORIGIN/libs:$ORIGIN/open") == "libmain.so needs libc.so.6: it is looked for in " +
                                                 (folder.path() / "open").string() + ", and " + open.string() +
                                                 " is writable by everyone (mode 1777)");
  CHECK(contains(with("$ORIGIN/open:$ORIGIN/libs"), "needs libdep.so: it is looked for in"));
  CHECK(contains(with("$ORIGIN/open/not/there:$ORIGIN/libs"), open.string() + " is writable by everyone"));
  CHECK(with("$ORIGIN/not/there:$ORIGIN/libs") == "");
  CHECK(contains(with("$ORIGIN/$LIB"), "of which only $ORIGIN is known here"));
}

TEST_CASE("a library is opened by its real path, and finds what lies beside it") {
  const PluginFolder folder;
  const fs::path libs = make_folder(folder, "libs");
  library(folder, "beside", libs, "int beside(void) { return 42; }");
  const fs::path main =
      library(folder, "opens", folder.path(), "int beside(void); int answer(void) { return beside(); }",
              fmt::format("-L{} -lbeside '-Wl,-rpath,$ORIGIN/libs'", libs.string()));
  fs::create_symlink(main, folder.path() / "link.so");
  std::string why;
  void* const opened = open_library(ResolvedFile(folder.path() / "link.so"), RTLD_NOW | RTLD_LOCAL, why);
  REQUIRE_MESSAGE(opened, why);
  void* const answer = dlsym(opened, "answer");
  CHECK(reinterpret_cast<int (*)()>(answer)() == 42);
  Dl_info info{};
  REQUIRE(dladdr(answer, &info) != 0);
  CHECK(info.dli_fname == main.string());  // what debuggers read symbols of
}

TEST_CASE("a library that was exchanged after it was looked at is refused") {
  const PluginFolder folder;
  const fs::path first = library(folder, "first", folder.path(), "int first(void) { return 1; }"),
                 second = library(folder, "second", folder.path(), "int second(void) { return 2; }");
  const ResolvedFile file(first);
  fs::rename(second, first);
  std::string why;
  CHECK(contains(error_of([&] { open_library(file, RTLD_NOW | RTLD_LOCAL, why); }),
                 first.string() + ": the loader has opened another file of this name than the one that was checked"));
  std::ofstream(folder.path() / "libno.so") << "no library";
  CHECK(open_library(ResolvedFile(folder.path() / "libno.so"), RTLD_NOW, why) == nullptr);
  CHECK(contains(why, "file too short"));
}
