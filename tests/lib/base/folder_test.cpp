#include "lib/base/file/folder.hpp"

#include <doctest/doctest.h>

#include <unistd.h>

#include <fstream>

#include "lib/base/error.hpp"

using namespace hexad;
namespace fs = std::filesystem;

namespace {

struct TempFolder {
  fs::path path = fs::temp_directory_path() / ("hexad-folder-" + std::to_string(::getpid()));
  TempFolder() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~TempFolder() { fs::remove_all(path); }
  fs::path write(const fs::path& name) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name) << "text";
    return path / name;
  }
};

std::vector<std::string> names(const std::vector<fs::directory_entry>& entries, const fs::path& folder) {
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : entries) found.push_back(entry.path().lexically_relative(folder).string());
  return found;
}

}  // namespace

TEST_CASE("a folder is listed in order of name, with what is below it where that is wanted") {
  const TempFolder folder;
  for (const char* name : {"b", "a/2", "a/1", "c"}) folder.write(name);
  fs::create_directory_symlink(folder.path, folder.path / "round");  // a way that never ends
  CHECK(names(entries_of(folder.path), folder.path) == std::vector<std::string>{"a", "b", "c", "round"});
  CHECK(names(entries_below(folder.path), folder.path) ==
        std::vector<std::string>{"a", "a/1", "a/2", "b", "c", "round"});
}

TEST_CASE("a folder that cannot be listed is no empty one") {
  const TempFolder folder;
  const fs::path file = folder.write("file");
  CHECK_THROWS_WITH_AS(entries_of(file), doctest::Contains("/file: cannot be listed: Not a directory"), Error);
  CHECK_THROWS_WITH_AS(entries_below(folder.path / "none"), doctest::Contains("/none: cannot be listed: No such file"),
                       Error);
}

TEST_CASE("what a folder holds, for a message") {
  const TempFolder folder;
  CHECK(listing_of(folder.path) == "nothing");
  for (const char* name : {"b/file", "a.txt", "c\nd"}) folder.write(name);
  CHECK(listing_of(folder.path) == "a.txt, b/, c\\nd");
  for (int i = 0; i < 9; ++i) folder.write("x" + std::to_string(i));
  CHECK(listing_of(folder.path) == "a.txt, b/, c\\nd, x0, x1, x2, x3, x4, x5, x6 and 2 more");
  CHECK_THROWS_WITH_AS(listing_of(folder.path / "a.txt"), doctest::Contains("cannot be listed"), Error);
}

TEST_CASE("what leads to nothing or in circles is to be read, so that its reader says so") {
  const TempFolder folder;
  fs::create_directory(folder.path / "folder");
  folder.write("file");
  fs::create_symlink("nowhere", folder.path / "dangling");
  fs::create_symlink("round", folder.path / "round");
  fs::create_symlink("/dev/null", folder.path / "device");
  for (const char* name : {"file", "dangling", "round"})
    CHECK_MESSAGE(is_to_be_read(fs::directory_entry(folder.path / name)), name);
  for (const char* name : {"folder", "device"})
    CHECK_MESSAGE(!is_to_be_read(fs::directory_entry(folder.path / name)), name);
}

TEST_CASE("a folder is dissolved into the one that holds it") {
  const TempFolder folder;
  for (const char* name : {"aside/step_1/info", "aside/status"}) folder.write(name);
  dissolve_folder(folder.path / "aside");
  CHECK(names(entries_below(folder.path), folder.path) == std::vector<std::string>{"status", "step_1", "step_1/info"});
}
