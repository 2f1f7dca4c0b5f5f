// A file that is looked at by its descriptor, whatever becomes of its name.
#include "lib/base/file/resolved_file.hpp"

#include <sys/mman.h>

#include "tests/plugin/plugin_folder.hpp"

using hexad::ResolvedFile;
using namespace plugin_test;

namespace {

std::string text_of(const ResolvedFile& file) {
  std::string text(file.size(), '\0');
  return file.read(std::as_writable_bytes(std::span(text))) ? text : "(shorter)";
}

}  // namespace

TEST_CASE("what was opened is read, also when the name leads elsewhere by then") {
  const PluginFolder folder;
  fs::create_directory(folder.path() / "real");
  std::ofstream(folder.path() / "real" / "a") << "first";
  std::ofstream(folder.path() / "b") << "second";
  fs::create_symlink("real/a", folder.path() / "link");
  ResolvedFile file(folder.path() / "link");
  fs::rename(folder.path() / "b", folder.path() / "link");
  CHECK(file.path() == folder.path() / "real" / "a");
  CHECK(file.size() == 5);
  CHECK(text_of(file) == "first");
  CHECK(text_of(ResolvedFile(folder.path() / "link")) == "second");
  const ResolvedFile moved = std::move(file);
  CHECK(text_of(moved) == "first");
  fs::resize_file(moved.path(), 2);
  CHECK(text_of(moved) == "(shorter)");
}

TEST_CASE("what is no regular file is not opened, and a pipe does not make anybody wait") {
  const PluginFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const auto said = [](const fs::path& name) { return error_of([&] { ResolvedFile file(name); }); };
  CHECK(contains(said(pipe), pipe.string() + ": not a regular file"));
  CHECK(contains(said(folder.path()), folder.path().string() + ": not a regular file"));
  CHECK(contains(said(folder.path() / "gone"), "gone: cannot be opened: No such file"));
}

TEST_CASE("a name that is trusted is not judged") {
  const PluginFolder folder;
  const fs::path file = folder.path() / "a";
  std::ofstream(file) << "x";
  chmod(file.c_str(), 0666);
  CHECK(ResolvedFile(file).insecure() == file.string() + " is writable by everyone (mode 0666)");
  CHECK_FALSE(ResolvedFile(file, hexad::refuse_file, true).insecure());
}

TEST_CASE("a map is known by the file that it is of, not by its name") {
  const PluginFolder folder;
  const fs::path name = folder.path() / "a";
  std::ofstream(name) << std::string(10000, 'a');
  const ResolvedFile file(name);
  const auto mapped = [&] {
    const int descriptor = ::open(name.c_str(), O_RDONLY);
    void* const address = ::mmap(nullptr, 10000, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor, 0);
    ::close(descriptor);
    REQUIRE(address != MAP_FAILED);
    return static_cast<char*>(address);
  };
  char* const same = mapped();
  CHECK(file.is_mapped_at(same));
  CHECK(file.is_mapped_at(same + 9000));
  std::ofstream(folder.path() / "b") << std::string(10000, 'a');
  fs::rename(folder.path() / "b", name);
  char* const other = mapped();
  CHECK_FALSE(file.is_mapped_at(other));
  CHECK(file.is_mapped_at(same));
  int local = 0;
  CHECK_FALSE(file.is_mapped_at(&local));
  ::munmap(same, 10000), ::munmap(other, 10000);
}
