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

namespace {
// What asking says is what making says, to whoever makes it.
void same_as_made(const fs::path& folder, const std::string& words) {
  const std::error_code asked = why_not_made(folder);
  std::error_code made;
  fs::create_directories(folder, made);
  CHECK_MESSAGE(asked == made, folder << ": asked: " << asked.message() << ", made: " << made.message());
  CHECK_MESSAGE((asked ? asked.message() : "") == words, folder << ": " << asked.message());
}
}  // namespace

TEST_CASE("why a folder cannot be made is asked without making it") {
  const TempFolder folder;
  const fs::path file = folder.write("file");
  fs::create_symlink("nowhere", folder.path / "dangling");
  fs::create_symlink("round", folder.path / "round");
  fs::create_directory_symlink(folder.path, folder.path / "link");
  const auto before = names(entries_of(folder.path), folder.path);
  const auto changed = fs::last_write_time(folder.path);
  CHECK_FALSE(why_not_made(folder.path / "a/b/c"));
  CHECK(fs::last_write_time(folder.path) == changed);
  CHECK(names(entries_of(folder.path), folder.path) == before);

  same_as_made(folder.path, "");
  same_as_made(folder.path / "a/b/", "");
  same_as_made(folder.path / "c/../d", "");
  same_as_made(folder.path / "link/e", "");
  same_as_made("", "Invalid argument");
  same_as_made(file, "Not a directory");
  same_as_made(file / "a/b", "Not a directory");
  same_as_made(folder.path / "dangling", "File exists");
  same_as_made(folder.path / "dangling/a", "File exists");
  same_as_made(folder.path / "round/a", "Too many levels of symbolic links");
  same_as_made(folder.path / std::string(300, 'x'), "File name too long");
  same_as_made(folder.path / "f" / std::string(300, 'x'), "File name too long");
}

TEST_CASE("a folder in which nobody may make anything is known by asking") {
  const TempFolder folder;
  const fs::path closed = folder.path / "closed", hidden = folder.path / "hidden";
  fs::create_directories(hidden / "below");
  fs::create_directory(closed);
  fs::permissions(closed, fs::perms(0555));
  fs::permissions(hidden, fs::perms(0));
  constexpr uid_t kStranger = 65534;
  if (::geteuid() == 0) REQUIRE(::seteuid(kStranger) == 0);
  CHECK(why_nothing_added(closed).message() == "Permission denied");
  same_as_made(closed, "");
  same_as_made(closed / "a/b", "Permission denied");
  same_as_made(hidden / "below/a", "Permission denied");
  if (::getuid() == 0) REQUIRE(::seteuid(0) == 0);
  fs::permissions(hidden, fs::perms(0755));
}
