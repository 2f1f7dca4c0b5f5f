#include "lib/base/file/permissions.hpp"

#include <grp.h>
#include <sys/xattr.h>

#include "tests/plugin/plugin_folder.hpp"
#include "tests/support/report.hpp"

using hexad::insecure;
using hexad::insecure_folder;
using namespace plugin_test;

TEST_CASE("a file that only its owner and root can change is fine, also below a sticky directory") {
  const PluginFolder folder;
  std::ofstream(folder.path() / "a.so") << "x";
  chmod((folder.path() / "a.so").c_str(), 0644);
  CHECK(!insecure(folder.path() / "a.so"));
}

TEST_CASE("what others may write is named with its mode") {
  const PluginFolder folder;
  const fs::path inner = folder.path() / "plugins", file = inner / "a.so";
  fs::create_directory(inner);
  std::ofstream(file) << "x";
  chmod(inner.c_str(), 0755);
  chmod(file.c_str(), 0666);
  CHECK(insecure(file) == file.string() + " is writable by everyone (mode 0666)");
  chmod(file.c_str(), 0644);
  chmod(inner.c_str(), 0777);
  CHECK(insecure(file) == inner.string() + " is writable by everyone (mode 0777)");
  chmod(inner.c_str(), 01777);  // sticky does not help the directory that holds the plugin
  CHECK(insecure(file) == inner.string() + " is writable by everyone (mode 1777)");
  chmod(inner.c_str(), 0755);
  chmod(folder.path().c_str(), 0777);
  CHECK(insecure(file) == folder.path().string() + " is writable by everyone (mode 0777)");
}

TEST_CASE("what a group may write is refused, unless the user is all of the group") {
  const PluginFolder folder;
  const fs::path inner = folder.path() / "plugins", file = inner / "a.so";
  fs::create_directory(inner);
  std::ofstream(file) << "x";
  chmod(inner.c_str(), 0775);  // as umask 002 leaves them
  chmod(file.c_str(), 0664);
  if (geteuid() != 0) return test_report::skipped("needs root, to give files to another group");
  constexpr gid_t kNobodys = 54321;  // no database knows it
  REQUIRE(getgrgid(kNobodys) == nullptr);
  CHECK(!insecure(file));  // root's own group
  REQUIRE(chown(file.c_str(), 0, kNobodys) == 0);
  CHECK(insecure(file) == file.string() + " is writable by its group (mode 0664)");
  REQUIRE(chown(file.c_str(), 0, 0) == 0);
  REQUIRE(chown(inner.c_str(), 0, 65534) == 0);  // nogroup, which others are in
  CHECK(insecure(file) == inner.string() + " is writable by its group (mode 0775)");
}

TEST_CASE("a user and a group that no database knows are the user's where their numbers are equal") {
  if (geteuid() != 0) return test_report::skipped("needs root, to become another user");
  const PluginFolder folder;
  const fs::path file = folder.path() / "a.so";
  std::ofstream(file) << "x";
  constexpr uid_t kStranger = 54321;
  chmod(folder.path().c_str(), 0755);
  for (const gid_t group : {kStranger, kStranger + 1}) {
    REQUIRE(chown(file.c_str(), kStranger, group) == 0);
    chmod(file.c_str(), 0664);
    REQUIRE(seteuid(kStranger) == 0);
    const auto problem = insecure(file);
    REQUIRE(seteuid(0) == 0);
    CHECK(problem ==
          (group == kStranger ? std::nullopt : std::optional(file.string() + " is writable by its group (mode 0664)")));
  }
}

TEST_CASE("a link is judged by what it points to") {
  const PluginFolder folder;
  const fs::path real = folder.path() / "real.so", link = folder.path() / "link.so";
  std::ofstream(real) << "x";
  chmod(real.c_str(), 0666);
  fs::create_symlink(real, link);
  CHECK(insecure(link) == real.string() + " is writable by everyone (mode 0666)");
  CHECK(contains(insecure(folder.path() / "gone.so").value_or(""), "No such file"));
}

TEST_CASE("every folder that a link lies in or leads through is on the way") {
  const PluginFolder folder;
  const fs::path safe = folder.path() / "safe", open = folder.path() / "open", own = folder.path() / "own";
  for (const fs::path& each : {safe, open, own}) {
    fs::create_directory(each);
    chmod(each.c_str(), 0755);
  }
  std::ofstream(safe / "a.so") << "x";
  chmod((safe / "a.so").c_str(), 0644);
  fs::create_symlink("../safe/a.so", open / "a.so");
  fs::create_symlink("../safe/a.so", own / "a.so");
  fs::create_symlink("../open/a.so", own / "two.so");
  fs::create_symlink(open, own / "folder");
  for (const char* name : {"own/a.so", "own/two.so", "own/folder/a.so", "own/folder/../safe/a.so", "own/./../own/a.so"})
    CHECK_MESSAGE(!insecure(folder.path() / name), name);
  for (const mode_t mode : {0777, 01777}) {
    chmod(open.c_str(), mode);
    const std::string problem = fmt::format("{} is writable by everyone (mode {:04o})", open.string(), mode);
    CHECK(!insecure(own / "a.so"));
    CHECK(insecure(open / "a.so") == problem);  // where the name ends with the link
  }
  chmod(open.c_str(), 0777);
  for (const char* name : {"own/two.so", "own/folder/a.so", "own/folder/../safe/a.so"})
    CHECK_MESSAGE(contains(insecure(folder.path() / name).value_or(""), "open is writable by everyone"), name);
}

TEST_CASE("a link of somebody else's and links in a circle are told") {
  const PluginFolder folder;
  chmod(folder.path().c_str(), 0755);
  std::ofstream(folder.path() / "a.so") << "x";
  const fs::path link = folder.path() / "link.so", loop = folder.path() / "loop.so";
  fs::create_symlink("loop.so", loop);
  CHECK(contains(insecure(loop).value_or(""), "Too many levels of symbolic links"));
  CHECK(contains(insecure(folder.path() / "a.so" / "..").value_or(""), "Not a directory"));
  if (geteuid() != 0) return test_report::skipped("needs root, to give a link away");
  fs::create_symlink("a.so", link);
  CHECK(!insecure(link));
  REQUIRE(lchown(link.c_str(), 65534, 65534) == 0);
  CHECK(insecure(link) == link.string() + " belongs to user 65534, wanted root or user 0");
}

TEST_CASE("a list of users who may write is no private group") {
  const PluginFolder folder;
  const fs::path file = folder.path() / "a.so";
  std::ofstream(file) << "x";
  chmod(file.c_str(), 0664);
  if (geteuid() != 0) return test_report::skipped("needs root, whose group nobody else is in");
  CHECK(!insecure(file));
  // Version 2; user rw, user 65534 rw, group r, mask rw, others r: each a tag, its rights and an id.
  const unsigned char list[] = {2, 0,   0,    0,    1,    0,    6,    0, 255, 255,  255,  255,  2,    0,    6,
                                0, 254, 255,  0,    0,    4,    0,    4, 0,   0xff, 0xff, 0xff, 0xff, 0x10, 0,
                                6, 0,   0xff, 0xff, 0xff, 0xff, 0x20, 0, 4,   0,    0xff, 0xff, 0xff, 0xff};
  if (setxattr(file.c_str(), "system.posix_acl_access", list, sizeof list, 0) != 0)
    return test_report::skipped("needs a file system with access control lists");
  CHECK(insecure(file) == file.string() + " is writable by its group (mode 0664)");
}

TEST_CASE("a folder in which files are looked for is a place where others could put one") {
  const PluginFolder folder;
  const fs::path open = folder.path() / "open";
  fs::create_directory(open);
  chmod(open.c_str(), 01777);
  CHECK(!insecure_folder(folder.path()));
  CHECK(!insecure_folder(folder.path() / "not" / "there"));
  const std::string problem = open.string() + " is writable by everyone (mode 1777)";
  CHECK(insecure_folder(open) == problem);
  CHECK(insecure_folder(open / "not" / "there") == problem);  // whoever makes it has it
}
